import type { CapturedChange } from '../file-state.ts'
import type { BlobId } from '@tutti/core'
import type { ChangedPath, RunEvent } from '@tutti/protocol'
import { changedFile } from '../file-state.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })

export interface EventPath {
  readonly path: string
  readonly pathB64?: string
}

/** A path as events carry it: text, and the raw bytes when they are not valid UTF-8. */
export function pathFields(path: Uint8Array): EventPath {
  try {
    return { path: decoder.decode(path) }
  } catch {
    return { path: new TextDecoder().decode(path), pathB64: Buffer.from(path).toString('base64') }
  }
}

/** The bytes of a path that an event carries. */
export const eventPath = ({ path, pathB64 }: EventPath): Uint8Array =>
  pathB64 === undefined ? encoder.encode(path) : Buffer.from(pathB64, 'base64')

/** The event that tells of a change that a capture found. */
export const fileChange = (change: CapturedChange, incarnation: number): RunEvent => ({
  type: 'file_change',
  incarnation,
  ...changedPath(change),
})

/** The event that tells of a change of the user's. */
export const fileSync = (change: CapturedChange, commandId: string): RunEvent => ({
  type: 'file_sync',
  commandId,
  ...changedPath(change),
})

function changedPath(change: CapturedChange): ChangedPath {
  const base = change.base && { base: change.base }
  if (change.action === 'deleted')
    return {
      ...pathFields(change.path),
      action: 'deleted',
      ...(change.ignored && { ignored: true }),
      ...base,
    }
  const { path, fileType, mode } = change.state
  const file = changedFile(change)
  return {
    ...pathFields(path),
    action: change.action,
    fileType,
    mode,
    ...(file && { hash: file.hash, size: file.size, ...(file.ignored && { ignored: true }) }),
    ...base,
  }
}

/** The change that an event in the log stands for. */
export function changeOfEvent(event: ChangedPath): CapturedChange {
  const path = eventPath(event)
  const base = event.base && { base: event.base }
  const { action, fileType = 'file', mode = '100644' } = event
  if (action === 'deleted') return { action, path, ...(event.ignored && { ignored: true }), ...base }
  if (fileType === 'dir' || mode === '040000')
    return { action, state: { path, fileType: 'dir', mode: '040000' }, ...base }
  return {
    action,
    state: {
      path,
      fileType,
      mode,
      size: event.size ?? 0,
      hash: event.hash as BlobId,
      ...(event.ignored && { ignored: true }),
    },
    ...base,
  }
}
