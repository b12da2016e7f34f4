import type { RecordState, Sessions, TurnResult } from '@tutti/activities'
import type { Catalog, EventLog } from '@tutti/store'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { ActivityObserver } from './observe-activities.ts'

export interface WorkerMetrics {
  readonly observe: ActivityObserver
  /** The log, with its appends measured. */
  readonly measured: (eventLog: EventLog) => EventLog
  readonly egressDenied: () => void
}

export interface WorkerMetricsDeps {
  readonly registry: Registry
  readonly sessions: Sessions
  readonly leases: Catalog['leases']
  readonly host: string
  /** Milliseconds from an arbitrary start. */
  readonly monotonic: () => number
}

/** What a sandbox is doing. `verifying` are the fresh ones of checks on combined trees, also while they wait for their slot. */
const sandboxStates = ['booting', 'working', 'idle', 'verifying'] as const
const recoveryOutcomes = ['restarted', 'gave_up', 'data_loss'] as const

/** Registers the worker's metrics. Labels are closed lists: states, outcomes, reasons of the core's table. */
export function createWorkerMetrics(deps: WorkerMetricsDeps): WorkerMetrics {
  const { sessions, leases, host, monotonic } = deps
  const registers = [deps.registry]
  const active = new Map<string, number>()
  const activeNow = (type: string) => active.get(type) ?? 0
  const sandboxes = new Gauge({
    name: 'tutti_sandboxes',
    help: 'Living sandboxes of this worker, by what they do.',
    labelNames: ['state'],
    registers,
    collect() {
      const working = Math.min(
        activeNow('runTurn') + activeNow('checkpointTurn') + activeNow('checkAttempt'),
        sessions.all().length,
      )
      const counts: Record<(typeof sandboxStates)[number], number> = {
        booting: activeNow('provisionSandbox'),
        working,
        idle: sessions.all().length - working,
        verifying: activeNow('verify'),
      }
      for (const state of sandboxStates) sandboxes.set({ state }, counts[state])
    },
  })
  const waiting = new Gauge({
    name: 'tutti_agents_waiting_for_slot',
    help: 'Agents in the queue for a sandbox on this host.',
    registers,
    async collect() {
      const held = await leases.list(host, AbortSignal.timeout(5000))
      waiting.set(held.filter(({ kind, grantedAt }) => kind === 'agent' && grantedAt === undefined).length)
    },
  })
  const provision = new Histogram({
    name: 'tutti_provision_seconds',
    help: 'From an admitted agent to its ready sandbox: boots, hydration and setup command.',
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600],
    registers,
  })
  const turnSeconds = new Histogram({
    name: 'tutti_turn_seconds',
    help: 'Agents at work on one turn, of attempts that ended it.',
    buckets: [1, 5, 15, 60, 300, 900, 1800, 3600, 7200],
    registers,
  })
  const turns = new Counter({
    name: 'tutti_turns_total',
    help: 'Turns that have ended, by reason.',
    labelNames: ['reason'],
    registers,
  })
  const recoveries = new Counter({
    name: 'tutti_recoveries_total',
    help: 'Turns that were cut off: restarted in a new sandbox, given up after too many restarts, or damaged.',
    labelNames: ['outcome'],
    registers,
  })
  for (const outcome of recoveryOutcomes) recoveries.inc({ outcome }, 0)
  const appendSeconds = new Histogram({
    name: 'tutti_event_append_seconds',
    help: 'From an append to the log by this worker to its acknowledgement on disk.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  })
  const denied = new Counter({
    name: 'tutti_egress_denied_total',
    help: 'Connections that a sandbox was refused.',
    registers,
  })

  const ended = (type: string, input: unknown, result: unknown, seconds: number) => {
    if (type === 'provisionSandbox') provision.observe(seconds)
    if (type === 'runTurn') {
      turnSeconds.observe(seconds)
      turns.inc({ reason: (result as TurnResult).reason })
    }
    if (type !== 'recordState') return
    for (const event of (input as RecordState).events) {
      if (event.type === 'turn_interrupted') recoveries.inc({ outcome: 'restarted' })
      if (event.type !== 'turn_ended') continue
      if (event.reason === 'sandbox_lost') recoveries.inc({ outcome: 'gave_up' })
      if (event.reason === 'data_loss') recoveries.inc({ outcome: 'data_loss' })
    }
  }

  return {
    async observe({ type, input }, run) {
      const startedAt = monotonic()
      active.set(type, activeNow(type) + 1)
      try {
        const result = await run()
        ended(type, input, result, (monotonic() - startedAt) / 1000)
        return result
      } finally {
        active.set(type, activeNow(type) - 1)
      }
    },
    measured: (eventLog) => ({
      ...eventLog,
      async append(...call) {
        const startedAt = monotonic()
        const appended = await eventLog.append(...call)
        appendSeconds.observe((monotonic() - startedAt) / 1000)
        return appended
      },
    }),
    egressDenied: () => denied.inc(),
  }
}
