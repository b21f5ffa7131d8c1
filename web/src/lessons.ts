// The lessons that come with the page, in their order.

const texts = import.meta.glob<string>("../lessons/*.md", { query: "?raw", import: "default", eager: true });

/** Name of each lesson, and its text. */
export const LESSONS: { name: string; title: string; text: string }[] = Object.entries(texts)
  .sort(([a], [b]) => a.localeCompare(b))
  .map(([path, text]) => ({ name: /\d-([a-z-]+)\.md$/.exec(path)![1], title: /^# (.*)$/m.exec(text)![1], text }));
