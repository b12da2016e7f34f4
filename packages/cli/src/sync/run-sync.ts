import { lstatSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { followAgentEvents, type TuttiClient } from '@tutti/client'
import { TuttiError, type CrashPoint } from '@tutti/core'
import { explainRefusal } from '../workspace/explain-refusal.ts'
import { createFolderSync, type FolderSync } from './folder-sync.ts'
import { watchFolder } from './folder-watch.ts'
import { createLocalTree, type LocalTree } from './local-tree.ts'
import { createLocalWriter } from './local-writer.ts'
import type { PositionedEvent } from './remote-view.ts'
import type { SyncNote } from './sync-note.ts'
import { openSyncState, stateFolder, type SyncState } from './sync-state.ts'

export interface SyncRequest {
  /** Asked before every connection. */
  readonly client: () => Promise<TuttiClient>
  readonly bcId: string
  /** Absolute. */
  readonly folder: string
  /** End when both sides are in step, in place of staying. */
  readonly once: boolean
  /** Default: what the folder's disk does. */
  readonly ignoresCase?: boolean | undefined
  readonly allowDeletions: boolean
  readonly crashPoint: CrashPoint
  readonly note: (note: SyncNote) => void
  /** Something that concerns the whole: a lost connection, a workspace that is waited for. */
  readonly say: (text: string) => void
  readonly signal: AbortSignal
}

/** A look at the whole folder at least this often, in milliseconds, and never for more than a tenth of the time. */
const scanMs = 2000
/** What a watcher tells of comes in bursts, in milliseconds. */
const burstMs = 50
const waitMs = 1000
const eventsAtOnce = 2000
/** A sync that goes back and forth more often than this meets somebody who changes the same files all the time. */
const maxRounds = 20
/** Of them in a row for nothing but files that somebody writes at that very moment. */
const maxRestless = 3
const connectionLost = 'Lost the connection to the server; trying again.'

/**
 * Keeps a folder and an agent's workspace in step: what the agent changes comes into the folder, what the user changes goes to the agent
 * and wins (seed 003). The agent need not run, and does not notice when this ends; the next one goes on where it was.
 *
 * @returns how many paths are not in step, all of them told
 * @throws TuttiError `failed_precondition` for a folder that cannot be used, or when much is gone from it; `cancelled` by the signal.
 */
export async function runSync(request: SyncRequest): Promise<number> {
  try {
    return await syncFolder(request)
  } catch (thrown) {
    const { folder } = request
    throw explainRefusal(thrown, `The folder ${folder}`, { folder })
  }
}

async function syncFolder(request: SyncRequest): Promise<number> {
  const { bcId, folder, once } = request
  const state = openSyncState(folder, bcId)
  try {
    const ignoresCase = request.ignoresCase ?? diskIgnoresCase(folder)
    const tree = createLocalTree(folder, ignoresCase)
    const writer = createLocalWriter(tree, state.temporaries, request.crashPoint)
    const sync = createFolderSync({ ...request, state, tree, writer, ignoresCase, now: () => Date.now() })
    await patiently(request, () => sync.begin())
    for (let round = 0, restless = 0; round < maxRounds && restless < maxRestless; round += 1) {
      await patiently(request, () => catchUp(sync, state, request))
      await patiently(request, () => sync.begin())
      const how = await patiently(request, () => sync.settle('all'))
      if (how === 'settled') break
      restless = how === 'changing' ? restless + 1 : 0
    }
    const apart = sync.report(once)
    if (!once) {
      request.say(`In step${apart > 0 ? ' but for what is told' : ''}; what changes on either side follows.`)
      await stay(request, sync, state, tree)
    }
    return apart
  } finally {
    state.close()
  }
}

/** Somebody who stays waits for what passes; somebody who does not is told. */
async function patiently<T>({ once, say, signal }: SyncRequest, work: () => Promise<T>): Promise<T> {
  for (let told = ''; ;) {
    try {
      return await work()
    } catch (thrown) {
      const error = TuttiError.from(thrown)
      const isPassing =
        ['unavailable', 'aborted'].includes(error.code) ||
        /wait until its first turn runs/.test(error.message)
      if (once || signal.aborted || !isPassing) throw thrown
      if (told !== error.message) say(error.message)
      told = error.message
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
}

async function catchUp(
  sync: FolderSync,
  state: SyncState,
  { client, bcId, once, say, signal }: SyncRequest,
): Promise<void> {
  const policy = once ? { giveUpMs: 0 } : { onBroken: () => say(connectionLost) }
  const events: PositionedEvent[] = []
  for await (const event of followAgentEvents(client, { bcId, from: state.offset(), signal }, policy)) {
    events.push(event)
    if (events.length >= eventsAtOnce) await sync.take(events.splice(0))
  }
  await sync.take(events)
}

async function stay(
  request: SyncRequest,
  sync: FolderSync,
  state: SyncState,
  tree: LocalTree,
): Promise<void> {
  const { client, bcId, folder, say, signal } = request
  const queue: PositionedEvent[] = []
  let isDue = false
  let wake = () => {}
  let failure: TuttiError | undefined
  let hasEnded = false
  const ended = new AbortController()
  const reading = AbortSignal.any([signal, ended.signal])
  const read = async () => {
    const from = state.offset()
    const onBroken = () => say(connectionLost)
    const events = followAgentEvents(
      client,
      { bcId, from, follow: true, stay: true, signal: reading },
      { onBroken },
    )
    for await (const event of events) {
      queue.push(event)
      wake()
      while (queue.length > eventsAtOnce && !reading.aborted)
        await new Promise((resolve) => setTimeout(resolve, burstMs))
    }
  }
  const reader = read()
    .catch((thrown: unknown) => (failure = TuttiError.from(thrown)))
    .finally(() => {
      hasEnded = true
      wake()
    })
  const watcher = watchFolder(folder, () => {
    isDue = true
    wake()
  })
  watcher.follow(tree.folders())
  let everyMs = scanMs
  let scannedAt = performance.now()
  try {
    while (!signal.aborted) {
      if (queue.length === 0 && !isDue && !hasEnded) {
        const left = scannedAt + everyMs - performance.now()
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.max(0, left))
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
          signal.addEventListener('abort', wake, { once: true })
        })
        signal.removeEventListener('abort', wake)
      }
      if (isDue) await new Promise((resolve) => setTimeout(resolve, burstMs))
      const all = isDue || hasEnded || performance.now() - scannedAt >= everyMs
      isDue = false
      await sync.take(queue.splice(0))
      await patiently(request, () => sync.begin())
      const started = performance.now()
      await patiently(request, () => sync.settle(all ? 'all' : 'told'))
      sync.report(false)
      if (all) {
        watcher.follow(tree.folders())
        scannedAt = performance.now()
        everyMs = Math.max(scanMs, 10 * (scannedAt - started))
      }
      if (hasEnded) break
    }
  } finally {
    ended.abort()
    watcher.close()
    await reader
  }
  if (signal.aborted) throw new TuttiError('cancelled', 'The sync was ended.')
  if (failure) throw failure
  say("The agent's log is closed: nothing more will come.")
}

function diskIgnoresCase(folder: string): boolean {
  const probe = join(folder, stateFolder, 'case')
  writeFileSync(probe, '')
  try {
    return lstatSync(join(folder, stateFolder, 'CASE'), { throwIfNoEntry: false }) !== undefined
  } finally {
    unlinkSync(probe)
  }
}
