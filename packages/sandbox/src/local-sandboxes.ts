import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { resolve } from 'node:path'
import { settings, systemClock, throwIfCancelled, TuttiError, type Clock } from '@tutti/core'
import { bootId, processStart, withProcessLock } from '@tutti/processes'
import { probeBubblewrap, refuseIsolation, type BubblewrapSupport } from './bubblewrap-probe.ts'
import { removeEmptyGroups } from './remove-empty-groups.ts'
import { endProcesses } from './end-processes.ts'
import { checkMounts } from './check-mounts.ts'
import { createMountGuard } from './mount-guard.ts'
import { forgottenFiles } from './forgotten-files.ts'
import { killSandboxNow } from './kill-sandbox-now.ts'
import { createLocalSandbox, type LocalSandbox } from './local-sandbox.ts'
import { pickLimiter } from './pick-limiter.ts'
import type { HostSandboxProvider, SandboxRef, SandboxSpec } from './port.ts'
import type { LimiterKind, ResourceLimiter } from './resource-group.ts'
import { canMountDisk, makeDisk, removeDisk } from './sandbox-disk.ts'
import {
  isMakerAlive,
  listStates,
  listStatesSync,
  readState,
  removeState,
  sandboxFolder,
  sandboxId,
  writeState,
  type SandboxState,
} from './sandbox-state.ts'

export interface LocalSandboxesOptions {
  /** Folder of this provider alone; made when missing. Several processes may share it. */
  readonly root: string
  /** Tutti's data folder, which no sandbox may be given; `root` is refused in any case. */
  readonly dataDir?: string
  /** The pinned Node, mounted into every sandbox. */
  readonly nodePath: string
  /** From SIGTERM to SIGKILL, in milliseconds. Default: that of the setting `stop.grace`. */
  readonly stopGraceMs?: number
  readonly clock?: Clock
  /** Default: the best that works here, found by trying. A kind that does not work falls to `watchdog`. */
  readonly limiter?: LimiterKind
  /** Default: a size-limited mount where one can be made, else a watchdog. */
  readonly disk?: 'mount' | 'watchdog'
  /** Default: `bwrap` on PATH. */
  readonly bubblewrapPath?: string
}

/**
 * Sandboxes as processes of this host: bubblewrap namespaces, or a plain process group when isolation `none` is asked for.
 *
 * A sandbox lives no longer than the process that made it: it dies with it (bubblewrap), or is ended by the next {@link
 * HostSandboxProvider.reap}. So `attach` only finds sandboxes of this process.
 */
export function createLocalSandboxes(options: LocalSandboxesOptions): HostSandboxProvider {
  const { root, nodePath, stopGraceMs = settings['stop.grace'].default, clock = systemClock } = options
  const living = new Map<string, Promise<LocalSandbox>>()
  const ending = new Map<string, Promise<void>>()
  const guard = createMountGuard(resolve(root))
  let support: Promise<BubblewrapSupport> | undefined
  let limiter: ResourceLimiter | undefined
  let mounts: Promise<boolean> | undefined

  /** Between processes: nobody makes a sandbox while another one ends what a dead process left under the same name. */
  const withRootLock = <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> =>
    withProcessLock(`${resolve(root)}.lock`, signal, work)

  async function make(spec: SandboxSpec, id: string, signal: AbortSignal): Promise<LocalSandbox> {
    checkMounts(spec, [root, ...(options.dataDir === undefined ? [] : [options.dataDir])])
    let bubblewrap: (BubblewrapSupport & { works: true }) | undefined
    if (spec.policy.isolation === 'bubblewrap') {
      const found = await (support ??= probeBubblewrap(options.bubblewrapPath))
      if (!found.works) {
        // What was missing may be installed by the next try.
        support = undefined
        throw refuseIsolation(found)
      }
      bubblewrap = found
    }
    await mkdir(root, { recursive: true, mode: 0o700 })
    mounts ??= options.disk === 'watchdog' ? Promise.resolve(false) : canMountDisk(root)
    const mounted = await mounts
    limiter ??= pickLimiter(options.limiter)
    throwIfCancelled(signal)

    const state: SandboxState = {
      version: 1,
      id,
      key: spec.key,
      owner: spec.owner,
      isolation: spec.policy.isolation,
      bootId: bootId(),
      maker: { pid: process.pid, start: processStart(process.pid) ?? '' },
      groups: [],
      mounted,
    }
    await withRootLock(signal, async () => {
      const before = await readState(root, id)
      if (before && isMakerAlive(before) && before.maker.pid !== process.pid) {
        throw new TuttiError(
          'failed_precondition',
          `Process ${before.maker.pid} has the sandbox ${spec.key}.`,
          { key: spec.key },
        )
      }
      if (before || existsSync(sandboxFolder(root, id))) await end(id, before, 0, signal)
      // Before anything is made, so that whatever a crash leaves can be found.
      await writeState(root, state)
    })
    if (mounted) guard.add(id)
    try {
      const disk = await makeDisk(sandboxFolder(root, id), spec.policy.limits, mounted)
      const group = limiter.createGroup(id, spec.policy.limits)
      const complete = { ...state, groups: group.folders }
      await writeState(root, complete)
      return createLocalSandbox({
        root,
        spec,
        state: complete,
        disk,
        group,
        nodePath,
        ...(bubblewrap ? { bubblewrap } : {}),
      })
    } catch (error) {
      await end(id, state, 0, new AbortController().signal)
      throw error
    }
  }

  async function end(
    id: string,
    state: SandboxState | undefined,
    graceMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (state) {
      await endProcesses(state, graceMs, signal, clock)
      await removeEmptyGroups(state.groups, signal, clock)
    }
    await removeDisk(sandboxFolder(root, id))
    guard.remove(id)
    await removeState(root, id)
  }

  async function destroy(ref: SandboxRef, signal: AbortSignal): Promise<void> {
    const id = sandboxId(root, ref.key)
    const running = await living.get(id)?.catch(() => undefined)
    running?.release()
    const state = running?.state() ?? (await readState(root, id))
    if (!state && !existsSync(sandboxFolder(root, id))) return
    await end(id, state, stopGraceMs, signal)
    living.delete(id)
  }

  const provider: HostSandboxProvider = {
    name: 'local',

    async create(spec, signal) {
      throwIfCancelled(signal)
      const id = sandboxId(root, spec.key)
      await ending.get(id)
      const existing = living.get(id)
      if (existing) {
        const sandbox = await existing
        if ((await sandbox.alive(signal)) === 'running') return sandbox
        await provider.destroy(sandbox.ref, signal)
      }
      const made = make(spec, id, signal)
      living.set(id, made)
      made.catch(() => living.delete(id))
      return made
    },

    async attach(ref, signal) {
      const sandbox = await living.get(sandboxId(root, ref.key))?.catch(() => undefined)
      return sandbox && (await sandbox.alive(signal)) === 'running' ? sandbox : null
    },

    async list(owner) {
      const states = await listStates(root)
      return states.filter((state) => owner === undefined || state.owner === owner).map(refOf)
    },

    destroy(ref, signal) {
      const id = sandboxId(root, ref.key)
      const running = ending.get(id) ?? destroy(ref, signal).finally(() => ending.delete(id))
      ending.set(id, running)
      return running
    },

    async reap(signal) {
      const ended: SandboxRef[] = []
      const failures: unknown[] = []
      // One by one, as others wait for the lock, and what fails does not keep the rest.
      const each = async (work: () => Promise<void>) => {
        throwIfCancelled(signal)
        await withRootLock(signal, work).catch((error: unknown) => failures.push(error))
      }
      for (const { id } of (await listStates(root)).filter((state) => !isMakerAlive(state)))
        await each(async () => {
          // Somebody may have made it anew meanwhile, under the same key.
          const state = await readState(root, id)
          if (!state || isMakerAlive(state)) return
          await end(id, state, stopGraceMs, signal)
          ended.push(refOf(state))
        })
      for (const path of await forgottenFiles(root))
        await each(async () => {
          if ((await forgottenFiles(root)).includes(path)) await removeDisk(path)
        })
      if (failures.length > 0) throw failures[0]
      return ended
    },

    kill() {
      for (const sandbox of listStatesSync(root)) {
        if (isMakerAlive(sandbox) && sandbox.maker.pid === process.pid) killSandboxNow(root, sandbox)
      }
    },
  }
  return provider
}

const refOf = (state: SandboxState): SandboxRef => ({ provider: 'local', key: state.key, id: state.id })
