//! A manifest as Croissant metadata (MLCommons Croissant 1.0, <http://mlcommons.org/croissant/1.0>): where each file
//! is published, its size, format, checksum and licence, for programs that search or load data sets.

use crate::corpus::source::{File, Manifest, Origin, Source};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The vocabulary of the standard.
const CONTEXT: [(&str, &str); 12] = [
    ("@language", "en"),
    ("@vocab", "https://schema.org/"),
    ("citeAs", "cr:citeAs"),
    ("conformsTo", "dct:conformsTo"),
    ("cr", "http://mlcommons.org/croissant/"),
    ("dct", "http://purl.org/dc/terms/"),
    ("fileObject", "cr:fileObject"),
    ("includes", "cr:includes"),
    ("md5", "cr:md5"),
    ("recordSet", "cr:recordSet"),
    ("sc", "https://schema.org/"),
    ("source", "cr:source"),
];

/// The metadata of the manifest called `name`, JSON with a final newline.
pub fn croissant(name: &str, manifest: &Manifest) -> String {
    let context: Map<String, Value> = CONTEXT.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let licences: BTreeSet<&str> = manifest.sources.iter().map(|source| source.licence.as_str()).collect();
    let mut distribution: Vec<Value> = Vec::new();
    for source in &manifest.sources {
        distribution.extend(archive(source));
        distribution.extend(source.files.iter().map(|file| object(source, file)));
    }
    let document = json!({
        "@context": context,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": format!("shikha-{name}"),
        "description": format!("The public text files of Shikha's manifest `{name}`, each with its own source and licence. Generated from data-manifests/{name}.toml."),
        "license": licences,
        "url": format!("data-manifests/{name}.toml"),
        "version": env!("CARGO_PKG_VERSION"),
        "citeAs": manifest.sources.iter().map(|source| source.attribution.as_str()).collect::<BTreeSet<_>>(),
        "inLanguage": manifest.sources.iter().map(|source| source.language.as_str()).collect::<BTreeSet<_>>(),
        "distribution": distribution,
    });
    let text = serde_json::to_string_pretty(&document);
    text.unwrap_or_else(|e| unreachable!("plain data: {e}")) + "\n"
}

/// The crate that the files of a source come in. Its checksum is the one that `Cargo.lock` pins.
fn archive(source: &Source) -> Option<Value> {
    let Origin::Crate { name, version } = &source.origin else { return None };
    Some(json!({
        "@type": "cr:FileObject",
        "@id": format!("{name}-{version}.crate"),
        "name": format!("{name}-{version}.crate"),
        "contentUrl": format!("https://static.crates.io/crates/{name}/{name}-{version}.crate"),
        "encodingFormat": "application/gzip",
        "license": source.licence,
        "sha256": locked(name, version),
    }))
}

/// The checksum of a crate in the lock file this program was built with.
fn locked(name: &str, version: &str) -> Option<&'static str> {
    let head = format!("name = \"{name}\"\nversion = \"{version}\"\n");
    let (_, rest) = include_str!("../../Cargo.lock").split_once(&head)?;
    rest.split("\n\n").next()?.split("checksum = \"").nth(1)?.split('"').next()
}

fn object(source: &Source, file: &File) -> Value {
    let mut object = json!({
        "@type": "cr:FileObject",
        "@id": format!("{}/{}", source.id, file.path),
        "name": file.path,
        "description": format!("{}, {}; {}", source.domain, source.origin, source.attribution),
        "contentSize": format!("{} B", file.bytes),
        "encodingFormat": format(&file.path),
        "inLanguage": file.language.as_ref().unwrap_or(&source.language),
        "license": source.licence,
        "sha256": file.sha256.to_string(),
    });
    match (&source.origin, source.origin.published(&source.revision, &file.path)) {
        (_, Some((_, address))) => object["contentUrl"] = json!(address),
        (Origin::Crate { name, version }, None) => {
            object["contentUrl"] = json!(file.path);
            object["containedIn"] = json!({ "@id": format!("{name}-{version}.crate") });
        }
        _ => object["contentUrl"] = json!(file.path),
    }
    object
}

/// The media type of a file by its name.
fn format(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "csv" => "text/csv",
        "tsv" => "text/tab-separated-values",
        "md" | "mdx" => "text/markdown",
        "json" => "application/json",
        "jsonl" => "application/jsonlines",
        "xml" => "application/xml",
        "html" => "text/html",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_what_the_standard_asks_for() {
        for name in ["pocket", "small", "eval"] {
            let manifest = Manifest::load(name).unwrap();
            let document: Value = serde_json::from_str(&croissant(name, &manifest)).unwrap();
            for property in ["@context", "name", "description", "license", "url"] {
                assert!(!document[property].is_null(), "{name}: {property}");
            }
            assert_eq!(
                (&document["@type"], &document["conformsTo"]),
                (&json!("sc:Dataset"), &json!("http://mlcommons.org/croissant/1.0"))
            );
            let files = document["distribution"].as_array().unwrap();
            let ids: BTreeSet<&str> = files.iter().map(|file| file["@id"].as_str().unwrap()).collect();
            assert_eq!(ids.len(), files.len(), "{name}: ids are unique");
            for file in files {
                let text = |property: &str| file[property].as_str().unwrap_or_else(|| panic!("{property} of {file}"));
                assert!(text("sha256").len() == 64 && text("encodingFormat").contains('/') && !text("name").is_empty());
                let inside = file["containedIn"]["@id"].as_str();
                assert!(
                    text("contentUrl").starts_with("https://") || inside.is_some_and(|id| ids.contains(id)),
                    "{file}"
                );
            }
            let listed: usize = manifest.sources.iter().map(|source| source.files.len()).sum();
            assert!(files.len() >= listed && listed > 1);
        }
    }
}
