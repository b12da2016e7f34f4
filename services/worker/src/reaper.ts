import { removeAbandonedEgress } from '@tutti/agent-server'
import type { BlobStore } from '@tutti/blob-store'
import type { Clock } from '@tutti/core'
import type { Mirrors } from '@tutti/git'
import { removeAbandonedProbeRoots, type HostSandboxProvider } from '@tutti/sandbox'
import { endReplaced, type EndReplacedDeps } from './end-replaced.ts'
import { releaseSlots, releaseVerifySlots, type ReleaseSlotsDeps } from './release-slots.ts'
import { removeOldBundles } from './remove-old-bundles.ts'

export interface ReaperDeps extends EndReplacedDeps, ReleaseSlotsDeps {
  readonly sandboxes: Pick<HostSandboxProvider, 'reap'>
  readonly mirrors: Pick<Mirrors, 'sweep'>
  readonly blobs: Pick<BlobStore, 'removeLeftovers'>
  /** Milliseconds that a mirror of a repository stays that no agent or ensemble has ever worked on. */
  readonly retentionMs: number
  readonly cacheDir: string
  /** Paths in it that this process uses. */
  readonly bundles: readonly string[]
  readonly clock: Clock
}

/**
 * How often the reaper looks, in milliseconds. Nothing waits for it, but a host that wakes up with a sandbox that was replaced meanwhile
 * has ended it within 30 s.
 */
const intervalMs = 15_000
/** Of files that only take room: every 20 minutes. */
const sweepsPerFileSweep = 80

type Chore = (deps: ReaperDeps, signal: AbortSignal) => Promise<unknown>

const chores: Readonly<Record<string, Chore>> = {
  'sandboxes that were replaced': endReplaced,
  'sandboxes of dead processes': async ({ sandboxes, log }, signal) => {
    const ended = await sandboxes.reap(signal)
    if (ended.length > 0)
      log.info({ sandboxes: ended.map(({ key }) => key) }, 'ended sandboxes of a dead process')
  },
  'sockets of dead processes': removeAbandonedEgress,
  slots: releaseSlots,
}

const fileChores: Readonly<Record<string, Chore>> = {
  'probes of dead processes': removeAbandonedProbeRoots,
  'unfinished blobs': async ({ blobs }, signal) => blobs.removeLeftovers?.(signal),
  mirrors: async ({ mirrors, catalog, clock, retentionMs, log }, signal) => {
    const inUse = () => catalog.repositories.listInUse(signal)
    const removed = await mirrors.sweep({ inUse, unusedSince: clock.now() - retentionMs }, signal)
    if (removed.length > 0) log.info({ mirrors: removed }, 'removed mirrors that nobody has worked on')
  },
  bundles: ({ cacheDir, bundles }) => removeOldBundles(cacheDir, bundles),
}

/**
 * Finds and removes what nobody owns, outside every workflow (design §5): sandboxes, sockets and files of dead processes, sandboxes of
 * ours whose agent has a newer one elsewhere, slots of agents that are at rest and have no sandbox here, mirrors and bundles that nobody
 * uses. When this resolves, the first sweep is done but for files, so that a start has what a killed process took.
 */
export async function startReaper(deps: ReaperDeps): Promise<{ stop(): Promise<void> }> {
  const controller = new AbortController()
  const { signal } = controller
  await sweep(deps, { 'slots of verifications': releaseVerifySlots, ...chores }, signal)
  const loop = (async () => {
    for (let count = 0; ; count += 1) {
      if (count % sweepsPerFileSweep === 0) await sweep(deps, fileChores, signal)
      await deps.clock.sleep(intervalMs, signal)
      await sweep(deps, chores, signal)
    }
  })().catch(() => undefined)
  return {
    async stop() {
      controller.abort()
      await loop
    },
  }
}

/** One after another; one that fails does not keep the others, and is tried again with the next sweep. */
async function sweep(
  deps: ReaperDeps,
  which: Readonly<Record<string, Chore>>,
  signal: AbortSignal,
): Promise<void> {
  for (const [what, chore] of Object.entries(which)) {
    try {
      await chore(deps, signal)
    } catch (error) {
      if (signal.aborted) return
      deps.log.warn({ err: error, what }, 'a sweep failed')
    }
  }
}
