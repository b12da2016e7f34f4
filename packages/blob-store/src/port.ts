import type { BlobId } from '@tutti/core'

/** Half-open range of bytes; `end` may lie beyond the blob. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** What a store knows of a blob without reading it. */
export interface StoredBlob {
  readonly id: BlobId
  /** In bytes. */
  readonly size: number
  /** When it was stored, first or last, by the store's own clock; milliseconds since 1970. */
  readonly storedAt: number
}

/** A request that whoever holds it may make without credentials until it expires. It is a secret for as long. */
export interface SignedRequest {
  readonly method: 'GET' | 'PUT'
  readonly url: string
  /** To be sent exactly so: they are signed. An HTTP client may set `host` and `content-length` by itself. */
  readonly headers: Readonly<Record<string, string>>
  /** Milliseconds since 1970; credentials of the store that end earlier end it too. */
  readonly expiresAt: number
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
   * Stores many small contents, as {@link put} does each, in a fraction of the time. Some of them may be stored when it fails.
   *
   * @returns their ids, in the order of the contents
   * @throws TuttiError as {@link put}.
   */
  putAll(contents: readonly Uint8Array[], signal: AbortSignal): Promise<BlobId[]>

  /**
   * The blob's bytes, or those of `range`, as a stream. A whole blob is hashed on the way out: the stream fails with `data_loss`
   * at its end rather than pass off wrong bytes.
   *
   * @throws TuttiError `not_found` when there is no such blob; `data_loss` when the stored bytes are not those of the id.
   */
  stream(id: BlobId, signal: AbortSignal, range?: ByteRange): AsyncIterable<Uint8Array>

  /** Like {@link stream}, collected; for blobs that are known to be small. */
  get(id: BlobId, signal: AbortSignal, range?: ByteRange): Promise<Uint8Array>

  /**
   * The whole contents of many small blobs, as {@link get} gives each, in a fraction of the time. All of them are in memory at once.
   *
   * @returns them in the order of the ids
   * @throws TuttiError as {@link get}.
   */
  getAll(ids: readonly BlobId[], signal: AbortSignal): Promise<Uint8Array[]>

  /** Whether the blob can be read now. Cheap: no bytes move. */
  has(id: BlobId, signal: AbortSignal): Promise<boolean>

  /** How many bytes the blob has. As cheap as {@link has}. @throws TuttiError `not_found` when there is no such blob. */
  size(id: BlobId, signal: AbortSignal): Promise<number>

  /** Every blob that is there, in no order; what comes or goes meanwhile may be left out. For a sweep: it takes as long as there are blobs. */
  list(signal: AbortSignal): AsyncIterable<StoredBlob>

  /** Removes the blob; does nothing when it is not there. Whoever asks has made sure that nobody needs it, or is about to. */
  remove(id: BlobId, signal: AbortSignal): Promise<void>

  /** Removes what killed puts left, and nothing of one that goes on. For the reaper. Absent where nothing can be left. */
  removeLeftovers?(signal: AbortSignal): Promise<void>

  /**
   * Lets a client read the blob, or ranges of it, from the store itself. Not told here whether there is such a blob. The client hashes
   * what it gets: nobody else does. Absent where a store has no address of its own; clients then read through the API.
   *
   * @param expiresInMs from one second to seven days, cut to whole seconds.
   * @throws TuttiError `invalid_argument` for a time out of bounds; `unavailable` when there is nothing to sign with.
   */
  signedDownload?(id: BlobId, expiresInMs: number, signal: AbortSignal): Promise<SignedRequest>

  /**
   * Lets a client store the blob itself: these bytes and no others, for the store refuses what has another hash or length. A blob that
   * is there already is stored again: whoever has only its hash cannot do that. Absent as {@link signedDownload} is.
   *
   * @param size of the blob, in bytes; 5 GiB at most, as it goes in one request.
   * @param proof a text that nobody can guess, of letters, digits and hyphens: {@link uploadedWith} asks for it.
   * @param expiresInMs as for {@link signedDownload}.
   * @throws TuttiError as {@link signedDownload}; `invalid_argument` for a size out of bounds, too.
   */
  signedUpload?(
    id: BlobId,
    upload: { readonly size: number; readonly proof: string; readonly expiresInMs: number },
    signal: AbortSignal,
  ): Promise<SignedRequest>

  /** Whether the blob is in the store, and was stored last by the {@link signedUpload} with this proof: whoever made it had the bytes. */
  uploadedWith?(id: BlobId, proof: string, signal: AbortSignal): Promise<boolean>
}
