//! Writes the JavaScript and the types of a WebAssembly module: `bindgen MODULE.wasm NAME FOLDER`.

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, module, name, folder] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: bindgen MODULE.wasm NAME FOLDER".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).out_name(name).web(true)?.typescript(true).remove_producers_section(true).remove_name_section(true);
    Ok(bindgen.generate(folder)?)
}
