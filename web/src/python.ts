// The law of the editor as the skeleton of a Python class, with the JavaScript beside it as comments.

/** Body of a method of the class, lines without their common indentation. */
function body(code: string, method: string): string[] {
  const start = new RegExp(`^[ \\t]*${method}\\s*\\([^)]*\\)\\s*\\{`, "m").exec(code);
  if (!start) return [];
  let depth = 1;
  let end = start.index + start[0].length;
  const begin = end;
  while (end < code.length && depth > 0) {
    depth += { "{": 1, "}": -1 }[code[end]] ?? 0;
    end += 1;
  }
  const lines = code.slice(begin, end - 1).split("\n").map((line) => line.trimEnd()).filter((line) => line.trim());
  const indent = Math.min(...lines.map((line) => line.length - line.trimStart().length));
  return lines.map((line) => line.slice(indent));
}

export function asPython(code: string): string {
  const period = /^\s*period\s*=\s*([^;\n]+)/m.exec(code)?.[1] ?? "0.01";
  const comments = (method: string) => body(code, method).map((line) => `        # ${line}`);
  return [
    '"""A law from the playground: aqumen run SCENARIO.toml --aqm-from law.py:Own"""',
    "",
    "import aqumen",
    "",
    "",
    "class Own(aqumen.SampledLaw):",
    '    """Probability from the observed queue. The comments are the JavaScript of the playground."""',
    "",
    "    def start(self):",
    '        """Set the period and the initial state; self.network has the nominal network."""',
    `        self.period = ${period.trim()}`,
    "        self.p = 0.0",
    ...comments("constructor"),
    "",
    "    def step(self, seen):",
    '        """Return the probability until the next step."""',
    ...comments("step"),
    "        return self.p",
    "",
  ].join("\n");
}
