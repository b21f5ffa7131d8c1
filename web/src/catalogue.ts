// AQMs and transports that the engines know.

import { initSync, aqms as listAqms } from "./wasm/aqumen_web.js";
import { engineModule } from "./engine/client";

export interface AqmEntry {
  name: string;
  title: string;
  summary: string;
  kind: "single-queue" | "multi-queue" | "profile";
  /** Unit of the parameter `target`; absent without one. */
  target?: string | null;
  /** Algorithm of a profile. */
  algorithm?: string;
}

export async function readAqms(): Promise<AqmEntry[]> {
  initSync({ module: await engineModule() });
  return JSON.parse(listAqms()) as AqmEntry[];
}

/** Unit of the target of a SPEC: "pkt", "s", or nothing for an AQM without a target. */
export function targetUnit(entries: AqmEntry[], spec: string): string | undefined {
  const name = spec.split(":")[0].trim();
  const entry = entries.find((entry) => entry.name === name);
  const algorithm = entry?.algorithm ? entries.find((other) => other.name === entry.algorithm) : entry;
  return algorithm?.target ?? undefined;
}

/** Whether a SPEC is that of an AQM with at least the parameters of `wanted`. */
export function isAqm(spec: string, wanted: string): boolean {
  const [[name, ...parameters], [wantedName, ...needed]] = [spec, wanted].map((text) => text.replaceAll(" ", "").split(/[:,]/));
  return name === wantedName && needed.every((parameter) => parameters.includes(parameter));
}

/** Splits texts that hold one or several SPECs: `codel,pie:target=5ms,tupdate=15ms,fq-codel` are three, as on the command line. */
export function specList(texts: string[]): string[] {
  const specs: string[] = [];
  for (const text of texts) {
    for (const [i, piece] of text.split(",").entries()) {
      // In a parameter `=` comes before any `:`; any other piece begins a new SPEC.
      if (i > 0 && /^[^:]*=/.test(piece)) specs.push(`${specs.pop()},${piece}`);
      else specs.push(piece.trim());
    }
  }
  return specs.filter(Boolean);
}
