//! The report: claims ledger, tables and figures.
