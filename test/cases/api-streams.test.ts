import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import type { AgentId, EnsembleId } from '@tutti/core'
import {
  AgentService,
  BackgroundComposerService,
  CloudAgentWorkflowStatus,
  EnsembleService,
  ParallelAgentWorkflowStatusUpdate_Phase,
  RepositoryService,
  StreamAgentEventsRequestSchema,
  StreamAgentEventsResponseSchema,
  type StreamAgentEventsResponse,
} from '@tutti/proto'
import { decodeOffset, encodeOffset, encodeRunEvent } from '@tutti/protocol'
import { createTestRepository } from '@tutti/testkit'
import { startTestApi } from '@tutti/testkit/test-api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startDemoApi, type DemoApi } from './demo-api.ts'

let api: DemoApi
const never = new AbortController().signal
const repository = { location: { case: 'registered', value: 'demo' } } as const

beforeAll(async () => {
  api = await startDemoApi()
})
afterAll(() => api.close())

async function startAgent(): Promise<AgentId> {
  const { agent } = await api.client(AgentService).createAgent({ prompt: 'x', repository })
  return agent!.bcId as AgentId
}

describe('STR-04 offsets that are not offsets', () => {
  const damaged = (offset: string) => `${offset.slice(0, -1)}${offset.endsWith('a') ? 'b' : 'a'}`

  test('are refused by every stream, quickly, with one log line each and no control bytes in it', async () => {
    const bcId = await startAgent()
    const other = await startAgent()
    const { ensembleId } = await api
      .client(BackgroundComposerService)
      .startParallelAgentWorkflow({ spec: { prompt: 'x', repository, count: 1 } })
    const streams = [
      ['aiserver.v1.BackgroundComposerService/StreamConversation', { bc_id: bcId }, bcId],
      ['tutti.v1.AgentService/StreamAgentEvents', { bc_id: bcId }, bcId],
      [
        'tutti.v1.EnsembleService/StreamEnsembleEvents',
        { ensemble_id: ensembleId },
        ensembleId as `en-${string}`,
      ],
      [
        'aiserver.v1.BackgroundComposerService/StreamParallelAgentWorkflowStatus',
        { ensemble_id: ensembleId },
        ensembleId as `en-${string}`,
      ],
    ] as const
    for (const [path, ids, log] of streams) {
      const wrong = [
        '',
        'abc',
        '-5',
        '99999999999999999999',
        'x'.repeat(10_000),
        'a\0b',
        '%0d%0aid: 9',
        '\r\nid: 9',
        '\u009b31m',
        damaged(encodeOffset(log, 1)),
        encodeOffset(other, 1),
      ]
      // The first call of a method also prepares its rules.
      await streamError(path, { ...ids, offset_key: 'first' })
      await expect.poll(() => api.logLines.at(-1)).toContain(path)
      const lines = api.logLines.length
      const times: number[] = []
      for (const offset_key of wrong) {
        const started = performance.now()
        const error = await streamError(path, { ...ids, offset_key })
        expect(error, `${path} ${JSON.stringify(offset_key.slice(0, 50))}`).toMatchObject({
          code: 'invalid_argument',
        })
        times.push(performance.now() - started)
      }
      // The median: one call may fall into a pause of a machine that does other things too.
      expect(times.toSorted((left, right) => left - right)[wrong.length >> 1]).toBeLessThan(200)
      expect(await streamError(path, { ...ids, offset_key: encodeOffset(log, 4_000_000) })).toMatchObject({
        code: 'out_of_range',
      })
      await expect.poll(() => api.logLines.length - lines).toBe(wrong.length + 1)
    }
    // oxlint-disable-next-line eslint/no-control-regex -- what must not be there
    expect(api.logLines.filter((line) => /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(line))).toEqual([])
  })
})

describe('STR-08 from stored to live without a seam', () => {
  /** A fifth of the case's 5,000 stored and 10,000 live events, with its 100 readers. */
  const stored = 1000
  const live = 2000
  const readers = 100

  test('each of 100 readers, joining one after another, sees every event once and in order', async () => {
    const bcId = await startAgent()
    const bulk = Array.from({ length: stored }, (_, index) =>
      encodeRunEvent({ type: 'text_delta', text: `stored ${index}` }),
    )
    await api.store.eventLog.append(bcId, { id: 'client/bulk', epoch: 0, sequence: 1 }, bulk, never)
    const read = async (index: number) => {
      let last = 0
      for await (const { offsetKey, eventJson } of rawEvents({ bcId, follow: true })) {
        if (eventJson === '') continue
        const sequence = decodeOffset(bcId, offsetKey)
        if (sequence !== last + 1) throw new Error(`reader ${index}: ${sequence} after ${last}`)
        last = sequence
      }
      return last
    }
    const reading: Promise<number>[] = []
    let appended = 0
    const writing = Array.from({ length: 10 }, async (_, writer) => {
      for (let sequence = 1; appended < live; sequence += 1) {
        appended += 1
        const event = encodeRunEvent({ type: 'text_delta', text: `live ${writer} ${sequence}` })
        await api.store.eventLog.append(bcId, { id: `client/${writer}`, epoch: 0, sequence }, [event], never)
        // The next reader comes whenever so many more events are there: in the middle of the writing.
        if (reading.length < readers && appended >= (live / readers) * reading.length)
          reading.push(read(reading.length))
      }
    })
    await Promise.all(writing)
    await api.temporal.endTurn(bcId, 'completed')
    expect(reading).toHaveLength(readers)
    const { last: head } = await api.store.eventLog.head(bcId, never)
    expect(head).toBeGreaterThan(stored + live)
    expect(await Promise.all(reading)).toEqual(Array.from({ length: readers }, () => head))
  }, 120_000)
})

describe('STR-16 stream and record agree at the end', () => {
  test.each([
    ['completed', false],
    ['agent_error', true],
    ['stopped_by_user', false],
    ['timeout', true],
  ] as const)('after %s', async (reason, failed) => {
    const bcId = await startAgent()
    const composers = api.client(BackgroundComposerService)
    const statuses: string[] = []
    const reading = (async () => {
      for await (const { message } of composers.streamConversation({ bcId })) {
        if (message.case !== 'workflowStatusWithOffset') continue
        statuses.push(
          `${CloudAgentWorkflowStatus[message.value.workflowStatus]} ${message.value.tutti?.reason}`,
        )
      }
    })()
    await api.temporal.endTurn(bcId, reason, failed)
    await reading
    const last = `${failed ? 'ERROR' : 'IDLE'} ${reason}`
    expect(statuses.at(-1)).toBe(last)
    const got = await composers.getBackgroundComposerStatus({ bcId })
    const { composers: listed } = await composers.listBackgroundComposers({})
    const item = listed.find((composer) => composer.bcId === bcId)!
    for (const { workflowStatus, tutti } of [got, item]) {
      expect(`${CloudAgentWorkflowStatus[workflowStatus]} ${tutti?.reason}`).toBe(last)
    }
  })

  describe('who is told of the end finds it in the record, however late the catalog learns it', () => {
    /** Longer than any reader takes from the end in the log to its question. */
    const late = () => new Promise((resolve) => setTimeout(resolve, 300))
    const composers = () => api.client(BackgroundComposerService)
    const statusOf = async (bcId: AgentId) =>
      (await composers().getBackgroundComposerStatus({ bcId })).workflowStatus

    /** Ends the agent's turn, and a second one of which it is not known yet whether it was sent. */
    async function endLate(bcId: AgentId, turnId: string): Promise<void> {
      const { catalog, eventLog } = api.store
      const { state } = await catalog.agents.get('local', bcId, never)
      const { current: _current, ...rest } = state
      const end = { ...rest, queue: [], status: 'IDLE', reason: 'completed' } as const
      const events = [
        { type: 'turn_ended', turnId, reason: 'completed' },
        { type: 'status', status: 'IDLE', paused: false, reason: 'completed', queued: 0, hadSandbox: true },
      ] as const
      const producer = { id: 'client/end', epoch: 0, sequence: 1 }
      const { last } = await eventLog.append(bcId, producer, events.map(encodeRunEvent), never)
      await late()
      await catalog.agents.project(bcId, { state: end, hadSandbox: true, logSequence: last }, never)
    }

    test('StreamConversation', async () => {
      const bcId = await startAgent()
      const reading = (async () => {
        for await (const { message } of composers().streamConversation({ bcId }))
          if (message.case === 'workflowStatusWithOffset' && message.value.tutti?.reason === 'completed')
            return statusOf(bcId)
        return undefined
      })()
      await endLate(bcId, 'turn')
      expect(await reading).toBe(CloudAgentWorkflowStatus.IDLE)
    })

    test('StreamAgentEvents', async () => {
      const bcId = await startAgent()
      const reading = (async () => {
        for await (const { eventJson } of api.client(AgentService).streamAgentEvents({ bcId, follow: true }))
          if (eventJson.includes('"IDLE"')) return statusOf(bcId)
        return undefined
      })()
      await endLate(bcId, 'turn')
      expect(await reading).toBe(CloudAgentWorkflowStatus.IDLE)
    })

    test('a synchronous message', async () => {
      const bcId = await startAgent()
      const commands = api.temporal.commands.length
      const sent = composers().addAsyncFollowupBackgroundComposer({ bcId, followup: 'x', synchronous: true })
      await expect.poll(() => api.temporal.commands.length).toBe(commands + 1)
      const { command } = api.temporal.commands.at(-1)!.request
      await endLate(bcId, 'turn' in command ? command.turn.turnId : '')
      expect(await sent).toMatchObject({
        workflowStatus: CloudAgentWorkflowStatus.IDLE,
        reason: 'completed',
      })
    })

    test.each(['StreamParallelAgentWorkflowStatus', 'StreamEnsembleEvents'])('%s', async (name) => {
      const ensembles = api.client(EnsembleService)
      const started = await composers().startParallelAgentWorkflow({
        spec: { prompt: 'x', repository, count: 1 },
      })
      const ensembleId = started.ensembleId as EnsembleId
      const { COMPLETED } = ParallelAgentWorkflowStatusUpdate_Phase
      async function* ends() {
        if (name === 'StreamEnsembleEvents') {
          for await (const { eventJson } of ensembles.streamEnsembleEvents({ ensembleId, follow: true }))
            yield eventJson.includes('"COMPLETED"')
        } else {
          for await (const { phase } of composers().streamParallelAgentWorkflowStatus({ ensembleId }))
            yield phase === COMPLETED
        }
      }
      const reading = (async () => {
        for await (const isEnd of ends()) if (isEnd) return ensembles.getEnsemble({ ensembleId })
        return undefined
      })()
      const { catalog, eventLog } = api.store
      const end = { phase: 'COMPLETED', reason: 'completed' } as const
      const producer = { id: 'client/end', epoch: 0, sequence: 1 }
      const event = encodeRunEvent({ type: 'phase', ...end })
      const { last } = await eventLog.append(ensembleId, producer, [event], never)
      await late()
      await catalog.ensembles.project(ensembleId, { ...end, logSequence: last }, never)
      expect((await reading)?.ensemble).toMatchObject({ phase: COMPLETED, reason: 'completed' })
    })
  })

  test('a stream that is opened right after create begins and fills', async () => {
    const { agent } = await api.client(AgentService).createAgent({ prompt: 'x', repository })
    const bcId = agent!.bcId as AgentId
    const iterator = api
      .client(BackgroundComposerService)
      .streamConversation({ bcId })
      [Symbol.asyncIterator]()
    expect((await iterator.next()).value?.message.case).toBe('initialState')
    await api.temporal.endTurn(bcId, 'completed')
    const cases: string[] = []
    for (let next = await iterator.next(); !next.done; next = await iterator.next())
      cases.push(next.value.message.case!)
    expect(cases.at(-1)).toBe('workflowStatusWithOffset')
  })
})

test('streams of a closing server end as unavailable, and can be resumed', async () => {
  const own = await startTestApi()
  const folder = createTestRepository({ 'a.txt': 'a\n' })
  await own.client(RepositoryService).addRepository({ path: folder.path, name: 'demo' })
  const { agent } = await own.client(AgentService).createAgent({ prompt: 'x', repository })
  const first = Promise.withResolvers<void>()
  const reading = (async () => {
    for await (const _ of own.client(BackgroundComposerService).streamConversation({ bcId: agent!.bcId }))
      first.resolve()
  })()
  await first.promise
  await Promise.all([
    own.close(),
    expect(reading).rejects.toThrow(/unavailable.*resume from the last offset/),
  ])
  folder.remove()
})

/** The stream as a client without our library reads it; a hundred of ours in one process would be what is measured. */
async function* rawEvents(request: {
  bcId: string
  follow: boolean
}): AsyncGenerator<StreamAgentEventsResponse> {
  const message = toBinary(StreamAgentEventsRequestSchema, create(StreamAgentEventsRequestSchema, request))
  const response = await api.post('tutti.v1.AgentService/StreamAgentEvents', envelope(message), {
    'content-type': 'application/connect+proto',
  })
  let rest = Buffer.alloc(0)
  for await (const chunk of response.body!) {
    rest = Buffer.concat([rest, chunk as Uint8Array])
    let at = 0
    for (; rest.length >= at + 5;) {
      const end = at + 5 + rest.readUInt32BE(at + 1)
      if (rest.length < end) break
      const body = rest.subarray(at + 5, end)
      if (rest[at] === 0) yield fromBinary(StreamAgentEventsResponseSchema, body)
      else expect(body.toString()).toBe('{}')
      at = end
    }
    rest = rest.subarray(at)
  }
}

function envelope(message: Uint8Array): Buffer {
  const header = Buffer.alloc(5)
  header.writeUInt32BE(message.byteLength, 1)
  return Buffer.concat([header, message])
}

async function streamError(path: string, request: object): Promise<{ code: string }> {
  const response = await api.post(path, envelope(Buffer.from(JSON.stringify(request))), {
    'content-type': 'application/connect+json',
  })
  const answer = Buffer.from(await response.arrayBuffer())
  return (JSON.parse(answer.subarray(5).toString()) as { error: { code: string } }).error
}
