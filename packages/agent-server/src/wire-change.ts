import type { BlobId } from '@tutti/core'
import { changedFile, changePath, type CapturedChange } from '@tutti/workspace'

/** A change as JSON. In a capture its content follows as messages with the head `content` until `size` bytes came. */
export interface WireChange {
  readonly action: CapturedChange['action']
  /** base64: JSON carries no raw bytes. */
  readonly path: string
  readonly base?: BlobId
  readonly fileType?: 'file' | 'symlink' | 'dir'
  readonly mode?: '100644' | '100755' | '120000' | '040000'
  readonly size?: number
  readonly hash?: BlobId
  readonly ignored?: true
  /** Only in a capture: no content follows, since it came before the change, behind a head `{ content: true }`. */
  readonly ahead?: true
}

export const contentHead = 'content'

/** Behind content that comes before its change. */
export const contentEndHead = 'content_end'

/** In front of the changes of a hydration come the bytes of its pack, if it has one, and then a message that says it is whole. */
export const packHead = 'pack'
export const packEndHead = 'pack_end'

/**
 * Head of a message with changes on their way to a sandbox. Its bytes are their list, as JSON: there it counts for the flow control; and then the
 * contents of those that have no more than {@link smallBytes}, one behind the other. A larger one is alone, and followed by its content.
 */
export interface WireChangesHead {
  /** How many of the bytes are the list of {@link WireChange}. */
  readonly listBytes: number
}

/** Of a content that comes with its change. */
export const smallBytes = 64 << 10

/** Behind the changes. */
export const changesEndHead = 'changes_end'

export function toWireChange(change: CapturedChange): WireChange {
  const path = Buffer.from(changePath(change)).toString('base64')
  const base = change.base === undefined ? {} : { base: change.base }
  if (change.action === 'deleted')
    return { action: 'deleted', path, ...base, ...(change.ignored && { ignored: true }) }
  const { fileType, mode } = change.state
  const file = changedFile(change)
  return {
    action: change.action,
    path,
    ...base,
    fileType,
    mode,
    ...(file && { size: file.size, hash: file.hash, ...(file.ignored && { ignored: true }) }),
  }
}

/**
 * Only for what is trusted, or was checked before: {@link WireChange} is a promise of the sender.
 *
 * @throws Error when a field is missing.
 */
export function fromWireChange(wire: WireChange): CapturedChange {
  const path = Buffer.from(wire.path, 'base64')
  const base = wire.base === undefined ? {} : { base: wire.base }
  if (wire.action === 'deleted')
    return { action: 'deleted', path, ...base, ...(wire.ignored && { ignored: true }) }
  const { fileType, mode, size, hash, ignored } = wire
  if (fileType === 'dir') return { action: wire.action, state: { path, fileType, mode: '040000' }, ...base }
  if (!fileType || !mode || mode === '040000' || size === undefined || !hash)
    throw new Error('a change without its state')
  const state = { path, fileType, mode, size, hash, ...(ignored && { ignored }) }
  return { action: wire.action, state, ...base }
}
