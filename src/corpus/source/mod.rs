//! Where text comes from: manifests, the store that fetches and checks files, and a reader per format.
