/**
 * Objects under names, kept for ever: packs of commits and sealed logs, which everything else can be made from again. Nothing sweeps
 * them, and a name stands for one content for ever, or for contents that serve equally well.
 *
 * A name is parts of letters, digits and `._-` with single slashes between, each of 255 characters at most: a part of a key is a file
 * name on many servers.
 */
export interface Archive {
  /**
   * Stores the bytes under the name, in the place of what is there, once they are durable: a crash after the return loses nothing, a
   * crash before it leaves nothing that can be read.
   *
   * @throws TuttiError `unavailable` when the store cannot be reached or is full; what was there is unchanged.
   */
  put(name: string, bytes: Uint8Array | AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>

  /** Whether there is something under the name. */
  has(name: string, signal: AbortSignal): Promise<boolean>

  /** The bytes. They are not hashed: what they are tells whether they are whole. @throws TuttiError `not_found`; `data_loss` when the disk cannot read them. */
  stream(name: string, signal: AbortSignal): AsyncIterable<Uint8Array>

  /** Names that begin so, in their order. The prefix has a slash behind its last folder, and may go on with the beginning of a name. */
  list(prefix: string, signal: AbortSignal): AsyncIterable<string>
}
