// Where values stand in the text of a JSON document, and where a loss is in it.
"use strict";

const jsonRanges = (() => {
  const SPACE = /[\s,:]*/y;
  const STRING = /"(?:[^"\\]|\\.)*"/y;
  const WORD = /[^\s,:\[\]{}"]+/y;
  const CONTAINERS = new Map([["messages", ["messages", "input", "contents"]], ["content", ["content", "parts"]]]);

  // Returns the tree of values: { start, end, members: [{ name, key, value }] }; null if the text is no JSON.
  function parse(text) {
    let at = 0;
    const match = (pattern) => { pattern.lastIndex = at; const found = pattern.exec(text); if (found) at = pattern.lastIndex; return found; };
    function value(depth) {
      match(SPACE);
      const start = at;
      const open = text[at];
      if (depth > 200) return null;
      if (open === '"') return match(STRING) && { start, end: at, members: [] };
      if (open !== "{" && open !== "[") return match(WORD) && { start, end: at, members: [] };
      at += 1;
      const members = [];
      for (;;) {
        match(SPACE);
        if (at >= text.length) return null;
        if (text[at] === "}" || text[at] === "]") { at += 1; return { start, end: at, members }; }
        let name = String(members.length);
        const begin = at;
        if (open === "{") { const found = match(STRING); if (!found) return null; name = found[0].slice(1, -1); }
        const inner = value(depth + 1);
        if (!inner) return null;
        members.push({ name, start: begin, value: inner });
      }
    }
    return value(0);
  }

  const member = (node, name) => (CONTAINERS.get(name) ?? [name]).map((one) => node.members.find((found) => found.name === one)).find(Boolean);
  const plain = (name) => name.replaceAll("_", "").toLowerCase();

  // The nearest member below a node with a name, in any spelling; breadth first.
  function below(node, name) {
    const queue = [node];
    for (let looked = 0; queue.length && looked < 2000; looked += 1) {
      const one = queue.shift();
      const found = one.members.find((each) => plain(each.name) === plain(name));
      if (found) return found;
      queue.push(...one.members.map((each) => each.value));
    }
    return null;
  }

  // Returns [start, end] of what a loss is about, or null if that is not in the text.
  function find(tree, loss) {
    let node = tree;
    let inner = null;
    for (const part of loss.where.replaceAll("[", ".").replaceAll("]", "").split(".").slice(1)) {
      const next = member(node, part);
      if (!next) break;
      [node, inner] = [next.value, next];
    }
    const found = below(node, loss.what.split(".").at(-1)) ?? below(tree, loss.what.split(".")[0]) ?? inner;
    return found ? [found.start, found.value.end] : null;
  }

  return { parse, find };
})();
