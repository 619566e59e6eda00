//! Manifests, text, token shards and the loader.
