import type { CaptureSink, CapturedChange, FileState } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
import type { TreeChange } from '@tutti/git'
import type { RunEvent } from '@tutti/protocol'
import { changedFile, changePath, pathKey } from '@tutti/workspace'

/** Changes of a workspace since its last checkpoint, by path. */
export interface WorkspaceTracker {
  /** Stores each change's content, then hands its event on: an event never names a missing object (design §8). */
  readonly sink: CaptureSink
  /** What the next checkpoint commit is made of: the newest state of each path that changed since the last one. */
  treeChanges(): readonly TreeChange[]
  /** A checkpoint holds everything up to now. */
  checkpointed(): void
}

export interface WorkspaceTrackerDeps {
  readonly blobs: BlobStore
  readonly incarnation: number
  readonly write: (event: RunEvent) => Promise<void>
  readonly signal: AbortSignal
  /** Changes that were captured before and are in no checkpoint yet. */
  readonly initial: readonly CapturedChange[]
}

const decoder = new TextDecoder('utf-8', { fatal: true })

/** A path as events carry it: text, and the raw bytes when they are not valid UTF-8. */
export function pathFields(path: Uint8Array): { path: string; pathB64?: string } {
  try {
    return { path: decoder.decode(path) }
  } catch {
    return { path: new TextDecoder().decode(path), pathB64: Buffer.from(path).toString('base64') }
  }
}

export function createWorkspaceTracker(deps: WorkspaceTrackerDeps): WorkspaceTracker {
  const { blobs, incarnation, write, signal } = deps
  const changes = new Map<string, CapturedChange>(
    deps.initial.map((change) => [pathKey(changePath(change)), change]),
  )

  const store = async (state: FileState, content: AsyncIterable<Uint8Array> | undefined) => {
    if (!content) throw new TuttiError('internal', 'A captured file came without its content.')
    const id = await blobs.put(content, signal)
    if (id !== state.hash)
      throw new TuttiError('data_loss', 'A captured file does not have the hash that was announced.')
  }

  return {
    sink: {
      async change(change, content) {
        const file = changedFile(change)
        if (file) await store(file, content)
        changes.set(pathKey(changePath(change)), change)
        await write(fileChange(change, incarnation))
      },
      skipped: (path, reason, size) =>
        write({
          type: 'file_skipped',
          incarnation,
          path: pathFields(path).path,
          reason,
          ...(size !== undefined && { size }),
        }),
    },
    treeChanges: () => [...changes.values()].map((change) => treeChange(change, blobs, signal)),
    checkpointed: () => changes.clear(),
  }
}

function fileChange(change: CapturedChange, incarnation: number): RunEvent {
  const base = change.base && { base: change.base }
  if (change.action === 'deleted') {
    return { type: 'file_change', incarnation, ...pathFields(change.path), action: 'deleted', ...base }
  }
  const { path, fileType, mode } = change.state
  const file = changedFile(change)
  return {
    type: 'file_change',
    incarnation,
    ...pathFields(path),
    action: change.action,
    fileType,
    mode,
    ...(file && { hash: file.hash, size: file.size }),
    ...base,
  }
}

function treeChange(change: CapturedChange, blobs: BlobStore, signal: AbortSignal): TreeChange {
  const file = changedFile(change)
  // git has no empty folders: what was at their path is gone.
  if (!file) return { path: changePath(change), deleted: true }
  const { path, mode, size, hash } = file
  return { path, mode, size, content: () => blobs.stream(hash, signal) }
}

/** The change that an event in the log stands for. */
export function changeOfEvent(event: Extract<RunEvent, { type: 'file_change' }>): CapturedChange {
  const path = event.pathB64 ? Buffer.from(event.pathB64, 'base64') : new TextEncoder().encode(event.path)
  const base = event.base && { base: event.base }
  const { action, fileType = 'file', mode = '100644' } = event
  if (action === 'deleted') return { action, path, ...base }
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
    },
    ...base,
  }
}
