import { setTimeout } from 'node:timers/promises'
import type { HostSession } from '../sessions.ts'
import { belowAny } from '@tutti/core'
import { decodeRunEvent, type FileSkipReason, type RunEvent } from '@tutti/protocol'
import { pathKey } from '@tutti/workspace'
import { eventPath } from '@tutti/workspace/log'
import { captureNow, createTestHost, type TestHost } from '../test-host.ts'
import { compareReports } from './compare-reports.ts'
import { makeBase } from './make-base.ts'
import { createFaultyPorts, faultSteps, type Fault } from './faulty-ports.ts'
import type { InsideReport } from './inside-program.ts'
import { addCounts, noCounts, type LifeCounts, type StruckFault } from './life-counts.ts'
import { randomEdits, type NamedEdit } from './random-edits.ts'
import { runInside } from './run-inside.ts'
import { createSeededRandom, type SeededRandom } from './seeded-random.ts'

const never = new AbortController().signal

export interface LifeOptions {
  /** Decides everything but the moments of kills that a clock decides. */
  readonly seed: number
  readonly recoveries: number
  readonly signal: AbortSignal
}

/**
 * One agent whose sandbox is lost again and again: edits by seed, captures and checkpoints, a kill at some point, a recovery, and a
 * comparison of what is there with the newest state that was captured. What a recovery gives is what the next one begins with.
 *
 * @throws Error with the differences, and every edit since the beginning; the signal's reason when it is aborted.
 */
export async function liveThrough({ seed, recoveries, signal }: LifeOptions): Promise<LifeCounts> {
  const random = createSeededRandom(seed)
  const ports = createFaultyPorts()
  const host = await createTestHost({
    files: { 'in.txt': 'in\n', 'tool.sh': '#!/bin/sh\n', '.gitignore': '*.log\n' },
    prepare: makeBase,
    maxFileBytes: 8 << 20,
    ...ports,
  })
  const history: string[] = []
  let counts = noCounts
  try {
    let session = await host.provision(1)
    let captured = await runInside(session, [])
    for (let round = 1; round <= recoveries; round += 1) {
      signal.throwIfAborted()
      history.push(`— sandbox ${session.incarnation}`)
      const told = (await host.events('recovery')).length
      const seconds = 1e9 + round * 1000
      const lost = await loseWork({ host, ports, random, session, captured, history, seconds })
      const recovered = await recover(host, ports, random, session.incarnation + 1, history)
      ;({ session } = recovered)
      const found = await runInside(session, [])
      const events = (await host.events('recovery')).slice(told)
      const wrong = await faultsOf(host, session, lost.expected, found, events)
      if (wrong.length > 0)
        throw new Error(
          wrong
            .slice(0, shownDifferences)
            .map((line) => line.slice(0, 2000))
            .join('\n'),
        )
      captured = found
      counts = addCounts(counts, {
        recoveries: 1,
        compared: lost.expected ? 1 : 0,
        faults: [lost.struck, recovered.struck].filter((fault) => fault !== undefined),
        cutOff: lost.cutOff ? 1 : 0,
        edits: lost.effective.length,
        shapes: new Set(lost.effective.flatMap(({ shape }) => shape ?? [])),
      })
    }
    return counts
  } catch (cause) {
    signal.throwIfAborted()
    const { message } = cause as Error
    throw new Error(
      `Seed ${seed} is not what was captured:\n${message}\nWhat was done:\n  ${history.join('\n  ')}`,
      { cause },
    )
  } finally {
    ports.disarm()
    await host.remove()
  }
}

const shownDifferences = 20

/** @param events of all recoveries since the loss: one that was cut off has told what is missing, and the next has it no more */
async function faultsOf(
  host: TestHost,
  session: HostSession,
  expected: InsideReport | undefined,
  found: InsideReport,
  events: Awaited<ReturnType<TestHost['events']>>,
): Promise<string[]> {
  const recoveries = events.filter((event) => event.type === 'recovery')
  const missing = recoveries.flatMap((event) => event.missing)
  const isCut = recoveries.some(({ moreMissing }) => moreMissing !== undefined)
  const wrong = expected ? compareReports(expected, found, { missing, isCut }) : []
  if (wrong.length > 0) wrong.push(`Told as missing: ${JSON.stringify(missing)}`)
  const isProven = recoveries.at(-1)?.proven === true
  if (!isProven && (await host.events('workspace_captured')).length > 0)
    wrong.push('The recovery says that nothing proves it.')
  const before = await host.store.eventLog.head(host.bcId, never)
  await captureNow(session)
  const changes = await changesSince(host, before.last)
  if (changes.length > 0)
    wrong.push(
      `A capture right after the recovery finds changes: ${changes.map((event) => JSON.stringify(event)).join(' ')}`,
    )
  return wrong
}

/** Of what nobody could read a recovery gives what was known. Whether newer rules ignore that is found once it can be read: no difference. */
async function changesSince(host: TestHost, from: number): Promise<readonly RunEvent[]> {
  const { records } = await host.store.eventLog.read(host.bcId, from, {}, never)
  const events = records.map(decodeRunEvent)
  const keyOf = (event: Parameters<typeof eventPath>[0]) => pathKey(eventPath(event))
  const keysSkipped = (reason: FileSkipReason, among: readonly RunEvent[]) =>
    among.flatMap((event) => (event.type === 'file_skipped' && event.reason === reason ? [keyOf(event)] : []))
  const unread = new Set(keysSkipped('unreadable', await host.events('file_skipped')))
  const wasUnread = belowAny(unread)
  const ignored = new Set(keysSkipped('ignored', events).filter((key) => unread.has(key) || wasUnread(key)))
  const isNewlyIgnored = (event: RunEvent) => {
    if (event.type === 'file_skipped') return ignored.has(keyOf(event))
    if (event.type !== 'file_change') return false
    const isSame = event.ignored === true && event.hash === event.base
    return isSame || (event.action === 'deleted' && ignored.has(keyOf(event)))
  }
  const changes = events.filter((event) => !isNewlyIgnored(event))
  return changes.filter(({ type }) => type !== 'workspace_captured' || changes.length > 1)
}

interface Losing {
  readonly host: TestHost
  readonly ports: ReturnType<typeof createFaultyPorts>
  readonly random: SeededRandom
  readonly session: HostSession
  readonly captured: InsideReport
  readonly history: string[]
  readonly seconds: number
}

interface Lost {
  /** What a recovery must give; absent where no one can know. */
  readonly expected?: InsideReport
  /** What changed anything on the way to that. */
  readonly effective: readonly NamedEdit[]
  readonly struck?: StruckFault
  /** A kill by the clock came before the end of what it was to cut off. */
  readonly cutOff?: boolean
}

/** Edits, and the end of the sandbox. */
async function loseWork(losing: Losing): Promise<Lost> {
  const { host, ports, random, session, history, seconds } = losing
  let { captured } = losing
  let effective: readonly NamedEdit[] = []
  const kill = () => session.server.kill()
  for (let more = random.below(2); more > 0; more -= 1) {
    const earlier = randomEdits(random, captured)
    history.push(...earlier.map(({ name }) => name), 'capture')
    captured = await runInside(session, earlier, { seconds: seconds + more * 50 })
    effective = [...effective, ...effectiveOf(earlier, captured)]
    await captureNow(session)
    if (random.chance(0.3)) {
      history.push('checkpoint')
      await host.checkpoint(session)
    }
  }
  const edits = randomEdits(random, captured)
  history.push(...edits.map(({ name }) => name))
  const way = random.pick(ways)
  history.push(`the end: ${way}`)
  if (way === 'while the agent works') {
    const running = underWay(runInside(session, edits, { seconds, inspect: false }))
    await setTimeout(random.below(60))
    const capture = underWay(captureNow(session))
    await setTimeout(random.below(60))
    const cutOff = running.isOpen() || capture.isOpen()
    await host.lose(session)
    await Promise.all([running.end, capture.end])
    return { effective: [], cutOff }
  }
  const now = await runInside(session, edits, { seconds })
  if (way === 'nothing captured') {
    await host.lose(session)
    return { expected: captured, effective }
  }
  const effectiveNow = [...effective, ...effectiveOf(edits, now)]
  const before = await stateEvents(host)
  const save = () =>
    random.chance(0.5) || way === 'at a step' ? host.checkpoint(session).then(() => {}) : captureNow(session)
  if (way === 'captured') {
    await save()
    await host.lose(session)
    return { expected: now, effective: effectiveNow }
  }
  let struck: StruckFault | undefined
  let cutOff = false
  if (way === 'during a capture') {
    const saving = underWay(save())
    await setTimeout(random.below(80))
    cutOff = saving.isOpen()
    await kill()
    await saving.end
  } else {
    const fault: Fault = {
      step: random.pick(faultSteps.slice(0, 4)),
      passing: 1 + random.below(2),
      when: random.pick(['before', 'after']),
      kills: random.pick(['host', 'sandbox']),
    }
    history.push(JSON.stringify(fault))
    ports.arm(fault, kill)
    await save().catch(() => undefined)
    if (ports.disarm()) struck = { ...fault, during: 'saving' }
  }
  await host.lose(session)
  const isIn = (await stateEvents(host)) > before
  history.push(isIn ? 'the log has it' : 'the log does not have it')
  const whole = isIn ? { expected: now, effective: effectiveNow } : { expected: captured, effective }
  return { ...whole, cutOff, ...(struck && { struck }) }
}

const effectiveOf = (edits: readonly NamedEdit[], { effective }: InsideReport): NamedEdit[] =>
  effective.map((index) => edits[index]!)

/** Something that may be cut off, and fail then. */
function underWay(work: Promise<unknown>): { readonly end: Promise<void>; isOpen(): boolean } {
  let isOpen = true
  const end = work.catch(() => {}).then(() => void (isOpen = false))
  return { end, isOpen: () => isOpen }
}

const ways = [
  'captured',
  'nothing captured',
  'during a capture',
  'at a step',
  'at a step',
  'while the agent works',
] as const

/** How much a log has of what captures found. */
const stateEvents = async (host: TestHost): Promise<number> =>
  (await host.events('file_change', 'git_state', 'file_skipped')).length

/** A new sandbox, also when its host dies on the way. */
async function recover(
  host: TestHost,
  ports: Losing['ports'],
  random: SeededRandom,
  first: number,
  history: string[],
): Promise<{ session: HostSession; struck?: StruckFault }> {
  if (random.chance(0.15)) {
    const step = random.pick(['append', 'hydrate.workspace'] as const)
    const fault: Fault = {
      step,
      passing: 1 + random.below(3),
      when: random.pick(['before', 'after']),
      kills: 'host',
    }
    history.push(`in the recovery: ${JSON.stringify(fault)}`)
    ports.arm(fault, async () => {})
    const session = await host.provision(first).catch(() => undefined)
    const isStruck = ports.disarm()
    if (session) await host.lose(session)
    return {
      session: await host.provision(first + 1),
      ...(isStruck && { struck: { ...fault, during: 'recovery' } }),
    }
  }
  return { session: await host.provision(first) }
}
