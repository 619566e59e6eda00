//! A manifest as Croissant metadata (MLCommons Croissant 1.0, <http://mlcommons.org/croissant/1.0>): where each file
//! is published, its size, format, checksum and licence, for programs that search or load data sets.

use crate::corpus::source::{File, Manifest, Origin, Reader, Source};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The terms of the standard that are named as in its own vocabulary.
const TERMS: [&str; 26] = [
    "citeAs",
    "column",
    "equivalentProperty",
    "extract",
    "field",
    "fileObject",
    "fileProperty",
    "fileSet",
    "format",
    "includes",
    "isLiveDataset",
    "jsonPath",
    "key",
    "md5",
    "parentField",
    "path",
    "recordSet",
    "references",
    "regex",
    "repeated",
    "replace",
    "samplingRate",
    "separator",
    "source",
    "subField",
    "transform",
];

/// Licences that are known by their name alone.
const SPDX: [&str; 5] = ["Apache-2.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC0-1.0", "MIT"];

/// The metadata of the manifest called `name`, JSON with a final newline.
pub fn croissant(name: &str, manifest: &Manifest) -> String {
    let licences: BTreeSet<&str> = manifest.sources.iter().map(|source| source.licence.as_str()).collect();
    let attributions: BTreeSet<&str> = manifest.sources.iter().map(|source| source.attribution.as_str()).collect();
    let mut distribution: Vec<Value> = Vec::new();
    for source in &manifest.sources {
        distribution.extend(archive(source));
        distribution.extend(source.files.iter().map(|file| object(source, file)));
    }
    let document = json!({
        "@context": context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": format!("shikha-{name}"),
        "description": format!("The public text files of Shikha's manifest `{name}`, each with its own source and licence. Generated from data-manifests/{name}.toml."),
        "creator": { "@type": "sc:Organization", "name": cited("  - name: ") },
        "datePublished": cited("date-released: "),
        "license": licences.into_iter().map(licence).collect::<Vec<_>>(),
        "url": format!("{}/blob/main/data-manifests/{name}.toml", env!("CARGO_PKG_REPOSITORY")),
        "version": env!("CARGO_PKG_VERSION"),
        "citeAs": attributions.into_iter().collect::<Vec<_>>().join("\n"),
        "inLanguage": manifest.sources.iter().map(|source| source.language.as_str()).collect::<BTreeSet<_>>(),
        "distribution": distribution,
        "recordSet": manifest.sources.iter().flat_map(records).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&document);
    text.unwrap_or_else(|e| unreachable!("plain data: {e}")) + "\n"
}

/// The context that the standard recommends.
fn context() -> Value {
    let mut context = json!({
        "@language": "en",
        "@vocab": "https://schema.org/",
        "conformsTo": "dct:conformsTo",
        "cr": "http://mlcommons.org/croissant/",
        "data": { "@id": "cr:data", "@type": "@json" },
        "dataType": { "@id": "cr:dataType", "@type": "@vocab" },
        "dct": "http://purl.org/dc/terms/",
        "examples": { "@id": "cr:examples", "@type": "@json" },
        "rai": "http://mlcommons.org/croissant/RAI/",
        "sc": "https://schema.org/",
    });
    TERMS.iter().for_each(|term| context[*term] = json!(format!("cr:{term}")));
    context
}

/// What stands after `key` in the file that says how to cite; the first where there are several.
fn cited(key: &str) -> &'static str {
    let value = include_str!("../../CITATION.cff").lines().find_map(|line| line.strip_prefix(key));
    value.unwrap_or_default().trim_matches('"')
}

/// A licence by its address where its name says all, else in the source's own words.
fn licence(text: &str) -> Value {
    if SPDX.contains(&text) {
        return json!(format!("https://spdx.org/licenses/{text}"));
    }
    json!({ "@type": "sc:CreativeWork", "name": text })
}

/// The records of the files of a source that have one on each line.
fn records(source: &Source) -> Vec<Value> {
    let files = source.files.iter().filter(|_| source.reader == Reader::Lines);
    let records = files.map(|file| {
        let (file, id) = (id(source, file), format!("{}/sentences", id(source, file)));
        json!({
            "@type": "cr:RecordSet",
            "@id": id,
            "name": id,
            "description": "Unrelated sentences, one on each line.",
            "field": [{
                "@type": "cr:Field",
                "@id": format!("{id}/text"),
                "name": "text",
                "description": "The sentence.",
                "dataType": "sc:Text",
                "source": { "fileObject": { "@id": file }, "extract": { "fileProperty": "lines" } },
            }],
        })
    });
    records.collect()
}

/// What a file is called in the metadata.
fn id(source: &Source, file: &File) -> String {
    format!("{}/{}", source.id, file.path)
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
        "license": licence(&source.licence),
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
        "@id": id(source, file),
        "name": file.path,
        "description": format!("{}, {}; {}", source.domain, source.origin, source.attribution),
        "contentSize": format!("{} B", file.bytes),
        "encodingFormat": format(&file.path),
        "inLanguage": file.language.as_ref().unwrap_or(&source.language),
        "license": licence(&source.licence),
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
            for property in ["@context", "name", "description", "license", "url", "version"] {
                assert!(!document[property].is_null(), "{name}: {property}");
            }
            assert!(document["url"].as_str().unwrap().starts_with("https://"));
            assert_eq!(document["creator"]["name"], "The Shikha developers");
            assert_eq!(document["datePublished"].as_str().unwrap().split('-').count(), 3, "a date");
            assert!(document["citeAs"].as_str().unwrap().lines().count() >= 1, "one text, a source a line");
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
            for set in document["recordSet"].as_array().unwrap() {
                let of = set["field"][0]["source"]["fileObject"]["@id"].as_str().unwrap();
                assert!(ids.contains(of) && !ids.contains(set["@id"].as_str().unwrap()), "{set}");
            }
            let listed: usize = manifest.sources.iter().map(|source| source.files.len()).sum();
            assert!(files.len() >= listed && listed > 1);
        }
    }

    #[test]
    fn a_licence_is_an_address_only_where_its_name_says_all() {
        assert_eq!(licence("CC0-1.0"), json!("https://spdx.org/licenses/CC0-1.0"));
        assert_eq!(licence("MIT for the code only")["name"], "MIT for the code only");
        let document: Value = serde_json::from_str(&croissant("pocket", &Manifest::load("pocket").unwrap())).unwrap();
        assert_eq!(document["license"], json!(["https://spdx.org/licenses/Apache-2.0"]));
        let ids: Vec<&str> =
            document["recordSet"].as_array().unwrap().iter().map(|r| r["@id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["pocket-bn/sentences.txt/sentences", "pocket-en/sentences.txt/sentences"]);
    }
}
