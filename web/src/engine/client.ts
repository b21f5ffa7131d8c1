// The page's end of a worker: each call returns a promise of its answer.

import EngineWorker from "./worker?worker&inline";
import wasmUrl from "../wasm/aqumen_web_bg.wasm?url";
import type { Answer, Call, Loaded, Look, Setup, ShownLink, Want } from "./protocol";

let compiled: Promise<WebAssembly.Module> | undefined;

/** The engines, compiled once for all workers. */
export function engineModule(): Promise<WebAssembly.Module> {
  compiled ??= fetch(wasmUrl).then(async (response) => WebAssembly.compile(await response.arrayBuffer()));
  return compiled;
}

/** Longest time that a step of a law of the page may take, milliseconds. */
const LAW_MS = 2000;

export class Engine {
  private worker = new EngineWorker();
  private waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  private next = 0;
  /** Ends the worker when a law of the page does not return. */
  private watchdog: ReturnType<typeof setTimeout> | undefined;
  private limited = false;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      this.watch();
      if ("alive" in data) return;
      const call = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      this.watch();
      if ("error" in data) call?.reject(new Error(data.error));
      else call?.resolve(data.result as never);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail(`the engine stopped: ${event.message}`);
    };
  }

  private fail(message: string): void {
    this.worker.terminate();
    this.waiting.forEach((call) => call.reject(new Error(message)));
    this.waiting.clear();
  }

  private watch(): void {
    clearTimeout(this.watchdog);
    if (this.limited && this.waiting.size)
      this.watchdog = setTimeout(() => this.fail(`step() did not return within ${LAW_MS / 1000} s`), LAW_MS);
  }

  private call<T>(call: Call): Promise<T> {
    const id = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, call });
      this.watch();
    });
  }

  async load(setup: Setup): Promise<Loaded> {
    this.limited = setup.aqm.split(":")[0] === "own";
    return this.call({ kind: "load", module: await engineModule(), setup });
  }

  show(link: string): Promise<ShownLink> {
    return this.call({ kind: "show", link });
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
    clearTimeout(this.watchdog);
    this.worker.terminate();
  }
}
