// `vite build` writes dist/; with `--mode single` one file that needs no server.
import { readFileSync } from "node:fs";
import { type Plugin, defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

/** Writes the service worker with the names of the files that it keeps. */
const offline: Plugin = {
  name: "offline",
  generateBundle(_, bundle) {
    const files = Object.keys(bundle).filter((name) => name.startsWith("assets/"));
    const source = readFileSync(new URL("src/service-worker.js", import.meta.url), "utf8").replace('"FILES"', JSON.stringify(files.sort()));
    this.emitFile({ type: "asset", fileName: "service-worker.js", source });
  },
};

export default defineConfig(({ mode }) => {
  const single = mode === "single";
  return {
    base: "./",
    plugins: single ? [viteSingleFile()] : [offline],
    build: {
      outDir: single ? "single" : "dist",
      target: "es2022",
      modulePreload: false,
      assetsInlineLimit: single ? Number.MAX_SAFE_INTEGER : 0,
      chunkSizeWarningLimit: 2000,
    },
  };
});
