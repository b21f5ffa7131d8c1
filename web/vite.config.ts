// `vite build` writes dist/; with `--mode single` one file that needs no server.
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig(({ mode }) => {
  const single = mode === "single";
  return {
    base: "./",
    plugins: single ? [viteSingleFile()] : [],
    build: {
      outDir: single ? "single" : "dist",
      target: "es2022",
      modulePreload: false,
      assetsInlineLimit: single ? Number.MAX_SAFE_INTEGER : 0,
      chunkSizeWarningLimit: 2000,
    },
  };
});
