import { createHash } from 'node:crypto'
import { mirrorRefs, type AgentId, type BlobId } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import { encodeOffset, type RunEvent } from '@tutti/protocol'
import { changePath, isInNoCommit, pathKey, type CapturedChange, type PathState } from '@tutti/workspace'
import { fileChange, type RecoveredWorkspace } from '@tutti/workspace/log'
import { createBlobBatch, maxBatched } from './blob-batch.ts'
import type { ActivityDeps } from './deps.ts'
import { keepCheckpoint } from './keep-checkpoint.ts'
import type { RunLogWriter } from './run-log-writer.ts'
import { treeChange } from './tree-change.ts'

export interface RestoreRequest {
  readonly bcId: AgentId
  readonly incarnation: number
  readonly requestId: string
  /** The log position whose workspace it is. */
  readonly at: number
  readonly mirror: Mirror
  readonly base: string
  readonly log: RunLogWriter
  /** What the log ends with. */
  readonly now: RecoveredWorkspace
  /** What it was then; it is in the sandbox, and its digest is this. */
  readonly wanted: RecoveredWorkspace
  readonly manifestDigest: string
  readonly entries: number
}

type Deps = Pick<ActivityDeps, 'blobs' | 'catalog' | 'clock' | 'crashPoint' | 'eventLog'>

/**
 * Makes an earlier workspace the newest one: nothing of the log goes, and what came after it stays where it is. The log has it like a
 * capture of everything that differs, with a checkpoint whose parent is the newest one before; so every reader of files follows without
 * knowing of it. What says so stands in front: a log that ends before the checkpoint tells the next sandbox to do it again.
 *
 * @returns the checkpoint
 */
export async function restoreWorkspace(
  deps: Deps,
  request: RestoreRequest,
  signal: AbortSignal,
): Promise<string> {
  const { bcId, incarnation, requestId, mirror, base, log, now, wanted, manifestDigest, entries } = request
  const parent = now.commit ?? base
  // A commit names no incarnation, and its ref would be moved back: whoever was replaced stops here.
  await deps.eventLog.expected(bcId, 'sandbox', incarnation, signal)
  const made = await deps.crashPoint('restore.commit', () =>
    mirror.commit(
      {
        parent,
        files: wanted.commit ?? base,
        changes: wanted.changes.map((change) => treeChange(change, deps.blobs, signal)),
        ref: mirrorRefs.checkpoint(bcId),
        message: `Checkpoint of ${bcId}\n\nAs it was at ${encodeOffset(bcId, request.at)}`,
        atMs: deps.clock.now(),
      },
      signal,
    ),
  )
  const changes = await differing(deps, { ...request, parent, commit: made.commit }, signal)
  const filesChanged = await mirror.countChanges(base, made.commit, signal)
  const kept = await keepCheckpoint(deps, mirror, { commit: made.commit, onto: parent, base }, signal)
  const events: RunEvent[] = [
    { type: 'workspace_restored', incarnation, requestId, atOffset: encodeOffset(bcId, request.at) },
    ...changes.map((change) => fileChange(change, incarnation)),
    ...(wanted.gitEvent ? [{ ...wanted.gitEvent, incarnation }] : []),
    { type: 'workspace_captured', incarnation, manifestDigest, entries },
    {
      type: 'checkpoint',
      incarnation,
      turnId: '',
      ...made,
      filesChanged,
      manifestDigest,
      ...(kept && { kept }),
    },
  ]
  const logSequence = await deps.crashPoint('restore.events', async () => {
    await log.write(...events)
    return log.flush()
  })
  await deps.catalog.agents.project(bcId, { logSequence, commit: made.commit, filesChanged }, signal)
  return made.commit
}

/** What each path that differs between now and then was then. Its content is stored before this is said. */
async function differing(
  { blobs }: Pick<Deps, 'blobs'>,
  {
    now,
    wanted,
    mirror,
    parent,
    commit,
  }: RestoreRequest & { readonly parent: string; readonly commit: string },
  signal: AbortSignal,
): Promise<readonly CapturedChange[]> {
  const paths = new Map<string, { readonly path: Uint8Array; readonly wasThere: boolean }>()
  for (const entry of await mirror.differences(parent, commit, signal)) paths.set(pathKey(entry.path), entry)
  for (const change of now.changes) {
    const path = changePath(change)
    paths.set(pathKey(path), { path, wasThere: change.action !== 'deleted' })
  }
  const target = new Map<string, PathState>()
  for (const change of wanted.changes) {
    if (change.action === 'deleted' || !isInNoCommit(change)) continue
    const key = pathKey(changePath(change))
    target.set(key, change.state)
    if (!paths.has(key)) paths.set(key, { path: changePath(change), wasThere: false })
  }
  const batch = createBlobBatch(blobs, signal)
  const store = async (content: AsyncIterable<Uint8Array>, size: number): Promise<BlobId> => {
    if (size > maxBatched) return blobs.put(content, signal)
    const bytes = Buffer.concat(await Array.fromAsync(content))
    const hash: BlobId = `sha256_${createHash('sha256').update(bytes).digest('hex')}`
    await batch.add(hash, bytes)
    return hash
  }
  for await (const { path, mode, size, content } of mirror.files(commit, signal, (at) =>
    paths.has(pathKey(at)),
  )) {
    const hash = await store(content, size)
    target.set(pathKey(path), { path, mode, size, hash, fileType: mode === '120000' ? 'symlink' : 'file' })
  }
  await batch.stored()
  return [...paths]
    .toSorted(([left], [right]) => (left < right ? -1 : 1))
    .flatMap(([key, { path, wasThere }]): CapturedChange[] => {
      const state = target.get(key)
      if (state) return [{ action: wasThere ? 'modified' : 'created', state } as const]
      return wasThere ? [{ action: 'deleted', path } as const] : []
    })
}
