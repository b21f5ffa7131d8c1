// Markdown of lessons as elements: paragraphs, lists, `code`, **strong**, *emphasis*, and links. No HTML passes through.

import type { ComponentChildren } from "preact";

function inline(text: string): ComponentChildren[] {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*|\[[^\]]+\]\(https?:[^)\s]+\))/);
  return parts.map((part) => {
    if (part.startsWith("`")) return <code>{part.slice(1, -1)}</code>;
    if (part.startsWith("**")) return <strong>{part.slice(2, -2)}</strong>;
    if (part.startsWith("*") && part.length > 2) return <em>{part.slice(1, -1)}</em>;
    const link = /^\[([^\]]+)\]\((https?:[^)\s]+)\)$/.exec(part);
    return link ? <a href={link[2]} rel="noopener">{link[1]}</a> : part;
  });
}

export function Markdown({ text }: { text: string }) {
  return (
    <>
      {text.split(/\n\s*\n/).map((block) => {
        const lines = block.trim().split(/\n/);
        if (lines[0].startsWith("#")) return <h3>{inline(lines[0].replace(/^#+ */, ""))}</h3>;
        if (lines.every((line) => /^[-*] |^ {2}/.test(line))) return <ul>{block.trim().split(/^[-*] /m).slice(1).map((item) => <li>{inline(item)}</li>)}</ul>;
        return <p>{inline(block)}</p>;
      })}
    </>
  );
}
