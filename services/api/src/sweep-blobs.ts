import { TuttiError, type BlobId } from '@tutti/core'
import { neededBlobs } from '@tutti/workspace/log'
import type { ApiDeps } from './api-deps.ts'

type Deps = Pick<ApiDeps, 'blobs' | 'catalog' | 'clock' | 'config' | 'crashPoint' | 'eventLog'>

export interface SweptBlobs {
  /** Blobs in the store. */
  readonly examined: number
  /** Those that were removed, or would be. */
  readonly removed: number
  /** Of those that were removed. */
  readonly bytes: number
}

/** It looks at every blob: not while everything starts, and not often. Days of retention do not need more. In milliseconds. */
export const [firstBlobSweepMs, blobSweepMs] = [600_000, 6 * 3_600_000]

/** Blobs that are removed together. */
const batch = 100
/** A batch that takes longer is given up; one that did not end for much longer is another sweep's. In milliseconds. */
const [batchMs, abandonedMs] = [60_000, 600_000]
const agentsAtOnce = 100

/**
 * Removes blobs that are older than `agent.retention` and that nothing needs (decision 0083): nobody has used or kept them since, and
 * no agent that is not EXPIRED needs them at any position of its log that is younger. Several may run at once.
 */
export async function sweepBlobs(deps: Deps, isDryRun: boolean, signal: AbortSignal): Promise<SweptBlobs> {
  const { blobs, catalog, clock, config } = deps
  const before = clock.now() - config['agent.retention']
  const { blobRefs } = catalog
  if (!isDryRun) {
    const left = await blobRefs.takeOverRemovals(clock.now() - abandonedMs, signal)
    for (let at = 0; at < left.length; at += batch)
      await remove(deps, left.slice(at, at + batch), before, signal)
  }
  // What anybody comes to need after this was announced by then, and is young.
  const needed = await neededByAgents(deps, before, signal)
  let examined = 0
  let removed = 0
  let bytes = 0
  let old = new Map<BlobId, number>()
  const flush = async () => {
    const gone = isDryRun
      ? await blobRefs.removable([...old.keys()], before, signal)
      : await blobRefs.beginRemoval([...old.keys()], before, signal)
    if (!isDryRun) await remove(deps, gone, before, signal)
    removed += gone.length
    for (const id of gone) bytes += old.get(id) ?? 0
    old = new Map()
  }
  for await (const { id, size, storedAt } of blobs.list(signal)) {
    examined += 1
    if (storedAt >= before || needed.has(id)) continue
    old.set(id, size)
    if (old.size >= batch) await flush()
  }
  await flush()
  return { examined, removed, bytes }
}

/** Of blobs whose removal has begun. What fails stays announced as being removed, for the next sweep to end. */
async function remove(
  { blobs, catalog, crashPoint }: Deps,
  ids: readonly BlobId[],
  before: number,
  signal: AbortSignal,
): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(batchMs)])
  if (ids.length === 0) return
  await crashPoint('blob.remove', () => Promise.all(ids.map((id) => blobs.remove(id, bounded))))
  await catalog.blobRefs.endRemoval(ids, before, bounded)
}

async function neededByAgents(deps: Deps, since: number, signal: AbortSignal): Promise<ReadonlySet<BlobId>> {
  const { catalog, eventLog } = deps
  const needed = new Set<BlobId>()
  for (let after = ''; ;) {
    const agents = await catalog.agents.scan(after, agentsAtOnce, signal)
    if (agents.length === 0) return needed
    for (const { bcId, state, savedState } of agents) {
      after = bcId
      if (savedState) needed.add(savedState.blobId)
      if (state.status === 'EXPIRED') continue
      const own = await neededBlobs(eventLog, bcId, since, signal).catch((thrown: unknown) => {
        // Its log is made right after its row.
        if (TuttiError.from(thrown).code === 'not_found') return []
        throw thrown
      })
      for (const id of own) needed.add(id)
    }
  }
}
