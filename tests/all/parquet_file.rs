//! Parquet files as the public corpora publish them, written for the tests.

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

/// Parquet with `rows` rows in a group and two columns, as the public corpora have more than one.
pub fn write(path: &Path, texts: &[Option<String>], rows: usize, compression: Compression) {
    let schema = "message m { required binary id (STRING); optional binary text (STRING); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(compression).set_data_page_row_count_limit(7);
    // A writer looks at the limits of a page, rows and a megabyte, after so many rows only.
    let properties = properties.set_write_batch_size(1);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    for group in texts.chunks(rows) {
        let mut row_group = writer.next_row_group().unwrap();
        let ids: Vec<ByteArray> = (0..group.len()).map(|i| format!("row {i}").as_str().into()).collect();
        let mut column = row_group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
        let levels: Vec<i16> = group.iter().map(|text| i16::from(text.is_some())).collect();
        let values: Vec<ByteArray> = group.iter().flatten().map(|text| text.as_str().into()).collect();
        let mut column = row_group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
        row_group.close().unwrap();
    }
    writer.close().unwrap();
}

/// Parquet without a row group, of the schema.
pub fn write_empty(path: &Path, schema: &str) {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let file = std::fs::File::create(path).unwrap();
    SerializedFileWriter::new(file, schema, Arc::default()).unwrap().close().unwrap();
}
