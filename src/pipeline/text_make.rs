//! Making documents, tokenizers and shards from text that may be larger than the memory: each reads its input
//! document by document.

use super::text::{
    BALANCE, CORPUS_REPORT, HELD_OUT, NAIVE, NAIVE_TOKENIZER, PARALLEL, TOKENIZER, TRAIN, TokenBalance, given,
    shard_path,
};
use super::text_sample::{Chosen, share};
use super::{Context, PipelineError, write_json};
use crate::corpus::balance;
use crate::corpus::shard::ShardWriter;
use crate::corpus::{Document, DocumentWriter, chunks, documents};
use crate::progress::Progress;
use crate::recipe::TokenizerRecipe;
use crate::tokenizer::Tokenizer;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) fn make_corpus(context: &Context, root: &Path) -> Result<(), PipelineError> {
    let directory = root.join("corpus");
    let mut train = DocumentWriter::create(&root.join(TRAIN))?;
    let mut held_out = DocumentWriter::create(&root.join(HELD_OUT))?;
    let (mut to_train, mut to_held_out) =
        (|document: Document| train.push(&document), |document: Document| held_out.push(&document));
    let (recipe, store) = (&context.recipe.corpus, context.store);
    let made =
        crate::corpus::prepare_into(context.manifest, recipe, store, &directory, &mut to_train, &mut to_held_out);
    let (parallel, report) = made?;
    report.require_languages(context.recipe.mix.keys())?;
    train.finish()?;
    held_out.finish()?;
    write_json(&root.join(PARALLEL), &parallel)?;
    write_json(&root.join(CORPUS_REPORT), &report)
}

pub(super) fn make_tokenizers(context: &Context, root: &Path) -> Result<(), PipelineError> {
    let (mut characters, mut bytes) = (BTreeMap::new(), 0.0);
    for document in documents(&root.join(TRAIN))? {
        let document = document?;
        bytes += document.text.len() as f64;
        *characters.entry(document.language).or_default() += document.text.chars().count() as f64;
    }
    let share = share(&root.join(TRAIN), context.recipe, &characters, bytes)?;
    let naive = TokenizerRecipe { pre_tokenizer: NAIVE.to_owned(), file: None, ..context.recipe.tokenizer.clone() };
    let mut progress = Progress::new("tokenizers", 2, "tokenizers");
    let mut count = 0;
    for (recipe, path) in [(&context.recipe.tokenizer, TOKENIZER), (&naive, NAIVE_TOKENIZER)] {
        if let Some(file) = &recipe.file {
            given(context, Path::new(file), &root.join(path))?;
            progress.advance(1, &recipe.pre_tokenizer);
            continue;
        }
        let (mut chosen, mut failed) = (Chosen::new(context.recipe, characters.clone(), share), None);
        count = 0;
        let texts = documents(&root.join(TRAIN))?.map_while(|document| match document {
            Ok(document) => Some(document),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let texts = texts.filter(|document| chosen.takes(document)).inspect(|_| count += 1).map(|d| d.text);
        let trained = Tokenizer::train_on(texts, recipe);
        if let Some(error) = failed {
            return Err(error.into());
        }
        trained?.save(&root.join(path))?;
        progress.advance(1, &recipe.pre_tokenizer);
    }
    progress.finish(&format!("trained on {count} documents"));
    Ok(())
}

pub(super) fn make_shards(context: &Context, root: &Path) -> Result<(), PipelineError> {
    let tokenizer = Tokenizer::load(&root.join(TOKENIZER))?;
    let hash = tokenizer.hash()?;
    let naive = Tokenizer::load(&root.join(NAIVE_TOKENIZER))?;
    let mut progress = Progress::new("shards", 2 * context.recipe.mix.len() as u64 + 1, "shards");
    let mut sizes = BTreeMap::new();
    let mut counts: [BTreeMap<String, u64>; 2] = Default::default();
    for (part, path) in [("train", TRAIN), ("held_out", HELD_OUT)] {
        let mut writers = BTreeMap::new();
        for language in context.recipe.mix.keys() {
            let path = root.join(shard_path(part, language));
            writers.insert(language.as_str(), ShardWriter::create(&path, hash, tokenizer.vocabulary_size())?);
        }
        for chunk in chunks(documents(&root.join(path))?) {
            let chunk = chunk?;
            let texts = || chunk.iter().map(|d| d.text.as_str());
            let ours = tokenizer.encode_all(texts())?;
            if part == "train" {
                let counted = [lengths(&naive.encode_all(texts())?), lengths(&ours)];
                for (i, document) in chunk.iter().enumerate() {
                    balance::count(&mut sizes, document);
                    for (counts, of) in counts.iter_mut().zip(&counted) {
                        *counts.entry(document.language.clone()).or_default() += of[i] as u64;
                    }
                }
            }
            for (document, mut tokens) in chunk.iter().zip(ours) {
                if let Some(writer) = writers.get_mut(document.language.as_str()) {
                    tokens.push(tokenizer.end_of_text());
                    writer.push(&tokens)?;
                }
            }
        }
        for (language, writer) in writers {
            writer.finish()?;
            progress.advance(1, language);
        }
    }
    let names = [NAIVE, context.recipe.tokenizer.pre_tokenizer.as_str()];
    let balances = names.into_iter().zip(&counts).map(|(name, counts)| TokenBalance {
        pre_tokenizer: name.to_owned(),
        languages: balance::shares(sizes.clone(), counts),
    });
    progress.finish("token shards written");
    write_json(&root.join(BALANCE), &balances.collect::<Vec<_>>())
}

fn lengths(tokens: &[Vec<u32>]) -> Vec<usize> {
    tokens.iter().map(Vec::len).collect()
}
