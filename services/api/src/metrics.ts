import { agentStatuses, type AgentStatus } from '@tutti/core'
import type { AgentCatalog } from '@tutti/store'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

import { localOwner } from './api-deps.ts'

/** What `/metrics` shows. Labels are closed lists: methods of our services, Connect codes, statuses. */
export interface ApiMetrics {
  readonly registry: Registry
  /** One call that has ended. */
  observeCall(method: string, code: string, seconds: number): void
  /** A reader came; call the answer when it leaves. */
  readerOpened(view: ReaderView): () => void
  /** How long an event took from its append to a live reader. */
  observeDelay(seconds: number): void
}

export type ReaderView = 'conversation' | 'agent_events' | 'ensemble_status' | 'ensemble_events'

/** Counting walks the catalog; scrapers often come in pairs. */
const countEveryMs = 10_000
const countPage = 1000

/** @param registry default a new one; a worker in the same process adds its metrics to it */
export function createMetrics({
  agents,
  registry = new Registry(),
}: {
  readonly agents: AgentCatalog
  readonly registry?: Registry
}): ApiMetrics {
  const registers = [registry]
  const calls = new Counter({
    name: 'tutti_rpc_total',
    help: 'Calls that have ended, by method and code.',
    labelNames: ['method', 'code'],
    registers,
  })
  const seconds = new Histogram({
    name: 'tutti_rpc_seconds',
    help: 'Duration of calls; of streams until they end.',
    labelNames: ['method'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers,
  })
  const readers = new Gauge({
    name: 'tutti_stream_readers',
    help: 'Open streams, by view.',
    labelNames: ['view'],
    registers,
  })
  const delay = new Histogram({
    name: 'tutti_event_delay_seconds',
    help: 'From the append of an event to its delivery to a live reader.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5],
    registers,
  })
  let counted = Number.NEGATIVE_INFINITY
  const gauge = new Gauge({
    name: 'tutti_agents',
    help: 'Agents in the catalog, by status.',
    labelNames: ['status'],
    registers,
    async collect() {
      if (performance.now() - counted < countEveryMs) return
      counted = performance.now()
      for (const status of agentStatuses) gauge.set({ status }, await countAgents(agents, status))
    },
  })
  return {
    registry,
    observeCall(method, code, elapsed) {
      calls.inc({ method, code })
      seconds.observe({ method }, elapsed)
    },
    readerOpened(view) {
      readers.inc({ view })
      return () => readers.dec({ view })
    },
    observeDelay: (elapsed) => delay.observe(Math.max(elapsed, 0)),
  }
}

async function countAgents(agents: AgentCatalog, status: AgentStatus): Promise<number> {
  const signal = AbortSignal.timeout(countEveryMs)
  let count = 0
  let pageToken = ''
  do {
    const page = await agents.list(
      localOwner,
      { statuses: [status] },
      { pageSize: countPage, pageToken },
      signal,
    )
    count += page.items.length
    pageToken = page.nextPageToken
  } while (pageToken !== '')
  return count
}
