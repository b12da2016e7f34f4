import type { BlobId } from '@tutti/core'

/** Half-open range of bytes; `end` may lie beyond the blob. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/**
 * Content-addressed bytes that outlive every sandbox (seed 003: the source of truth for file content).
 *
 * A blob never changes. Storing the same content twice is one blob. Who may read a blob is decided above this port, by
 * `blob_refs(owner, hash)`: an implementation knows no owners.
 */
export interface BlobStore {
  /**
   * Stores the bytes and returns their id once they are durable: a crash after the return loses nothing, a crash before it
   * leaves nothing that can be read.
   *
   * @throws TuttiError `unavailable` when the store cannot be reached or is full; nothing was stored.
   */
  put(bytes: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<BlobId>

  /**
   * The blob's bytes, or those of `range`, as a stream. A whole blob is hashed on the way out: the stream fails with `data_loss`
   * at its end rather than pass off wrong bytes.
   *
   * @throws TuttiError `not_found` when there is no such blob; `data_loss` when the stored bytes are not those of the id.
   */
  stream(id: BlobId, signal: AbortSignal, range?: ByteRange): AsyncIterable<Uint8Array>

  /** Like {@link stream}, collected; for blobs that are known to be small. */
  get(id: BlobId, signal: AbortSignal, range?: ByteRange): Promise<Uint8Array>

  /** Whether the blob can be read now. Cheap: no bytes move. */
  has(id: BlobId, signal: AbortSignal): Promise<boolean>
}
