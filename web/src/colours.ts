// Colours of the AQMs and of the flows, from the style sheet: they follow light and dark.

let cached: Map<string, string> | undefined;
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (cached = undefined));

export function colour(name: string): string {
  cached ??= new Map();
  let found = cached.get(name);
  if (!found) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    cached.set(name, found);
  }
  return found;
}

export const aqmColour = (slot: number): string => colour(`aqm-${slot}`);

/** Dashes that tell the AQMs apart without colour. */
export const aqmDash = (slot: number): number[] => [[], [8, 4], [2, 3], [10, 3, 2, 3]][slot];
