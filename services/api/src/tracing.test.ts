import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { TuttiError, spanIdsOf, type AgentId, type EnsembleId } from '@tutti/core'
import type { CloudAgentInput } from '@tutti/workflows'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import type { TemporalGateway } from './temporal-gateway.ts'
import { startCallSpan, traceGateway } from './tracing.ts'

const bcId: AgentId = 'bc-01890000-0000-7000-8000-000000000001'
const ensembleId: EnsembleId = 'en-01890000-0000-7000-9000-000000000002'
const input = { bcId, title: 'a title from the prompt' } as CloudAgentInput
const { signal } = new AbortController()
const exporter = new InMemorySpanExporter()

const answering = (agentCommand: TemporalGateway['agentCommand']): TemporalGateway => ({
  startAgent: () => Promise.resolve(),
  startEnsemble: () => Promise.resolve(),
  agentCommand,
  stopEnsemble: () => Promise.resolve(),
  ready: () => Promise.resolve(),
})
const gateway = traceGateway(
  answering((_input, { command }) =>
    command.type === 'pause'
      ? Promise.reject(new TuttiError('failed_precondition', 'words of a user'))
      : Promise.resolve({ state: 'RUNNING', position: 0, turnId: '', endingTurnId: '' }),
  ),
)

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  )
})
beforeEach(() => exporter.reset())
afterAll(() => {
  trace.disable()
  context.disable()
})

test("a client's traceparent becomes a link of the call and of what it sends, and decides no trace id", async () => {
  const client = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
  const call = startCallSpan('tutti.v1.AgentService', 'StopAgent', `00-${client.traceId}-${client.spanId}-00`)
  await call.run(() =>
    gateway.agentCommand(input, { requestId: 'r', command: { type: 'stop', all: false } }, signal),
  )
  call.end('ok')
  const [command, rpc] = exporter.getFinishedSpans()
  expect(rpc).toMatchObject({ name: 'tutti.v1.AgentService/StopAgent', links: [{ context: client }] })
  expect(rpc!.spanContext().traceId).not.toBe(client.traceId)
  expect(rpc!.parentSpanContext).toBeUndefined()
  const { spanId, traceId } = rpc!.spanContext()
  expect(command).toMatchObject({
    name: 'agent stop',
    parentSpanContext: spanIdsOf(bcId),
    links: [{ context: { traceId, spanId } }, { context: client }],
    attributes: { bc_id: bcId },
  })
  expect(command!.spanContext().traceId).toBe(spanIdsOf(bcId).traceId)
})

test.each(['', 'garbage', `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, null])(
  '%j links nothing',
  (header) => {
    startCallSpan('s', 'm', header).end('ok')
    expect(exporter.getFinishedSpans()).toMatchObject([{ links: [] }])
  },
)

test("a follow-up to a child joins its ensemble's trace, below the child's own span", async () => {
  const turn = { turnId: 't', promptBlobId: 'sha256_0', source: 'API' } as const
  await gateway.agentCommand(
    { ...input, memberOf: ensembleId },
    { requestId: 'r', command: { type: 'follow_up', turn } },
    signal,
  )
  const [span] = exporter.getFinishedSpans()
  expect(span).toMatchObject({
    name: 'agent follow_up',
    parentSpanContext: { traceId: spanIdsOf(ensembleId).traceId, spanId: spanIdsOf(bcId).spanId },
    attributes: { bc_id: bcId, ensemble_id: ensembleId },
  })
})

test('a refusal is told by its code alone', async () => {
  const paused = gateway.agentCommand(input, { requestId: 'r', command: { type: 'pause' } }, signal)
  await expect(paused).rejects.toThrow('words of a user')
  const [span] = exporter.getFinishedSpans()
  expect(span!.status).toMatchObject({ message: 'failed_precondition' })
  expect(span!.events).toEqual([])
})
