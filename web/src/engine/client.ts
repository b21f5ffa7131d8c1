// The page's end of a worker: each call returns a promise of its answer.

import EngineWorker from "./worker?worker&inline";
import wasmUrl from "../wasm/aqumen_web_bg.wasm?url";
import type { Answer, Call, Loaded, Look, Want } from "./protocol";

let compiled: Promise<WebAssembly.Module> | undefined;

/** The engines, compiled once for all workers. */
export function engineModule(): Promise<WebAssembly.Module> {
  compiled ??= fetch(wasmUrl).then(async (response) => WebAssembly.compile(await response.arrayBuffer()));
  return compiled;
}

export class Engine {
  private worker = new EngineWorker();
  private waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  private next = 0;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const call = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ("error" in data) call?.reject(new Error(data.error));
      else call?.resolve(data.result as never);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.waiting.forEach((call) => call.reject(new Error(`the engine stopped: ${event.message}`)));
      this.waiting.clear();
    };
  }

  private call<T>(call: Call): Promise<T> {
    const id = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, call });
    });
  }

  async load(scenario: string, aqm: string, seed: number, until_ns: number): Promise<Loaded> {
    return this.call({ kind: "load", module: await engineModule(), scenario, aqm, seed, until_ns });
  }

  advance(until_ns: number, want: Want): Promise<Look> {
    return this.call({ kind: "advance", until_ns, want });
  }

  push(event: string): Promise<void> {
    return this.call({ kind: "push", event });
  }

  scenario(): Promise<string> {
    return this.call({ kind: "scenario" });
  }

  close(): void {
    this.worker.terminate();
  }
}
