import { contractConfig } from '@tutti/agent/contract'
import type { AgentSession, TurnOutcome } from '@tutti/agent'
import { systemClock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import {
  createFakeModelServer,
  createLocalAgentHost,
  type FakeDelta,
  type FakeModelAnswer,
  type FakeModelServer,
  type LocalAgentHost,
} from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEmbeddedAdapter } from './embedded-adapter.ts'

const never = new AbortController().signal
const key = 'sk-test-0123456789'

// The other end is a fake that speaks the provider's protocol over real HTTP; no model thinks here.
describe('the embedded agent with an OpenAI-compatible server', () => {
  let host: LocalAgentHost
  let server: FakeModelServer
  beforeEach(async () => {
    host = await createLocalAgentHost()
  })
  afterEach(async () => {
    await server.close()
    await host.dispose()
  })

  const open = async (answers: readonly FakeModelAnswer[], exported?: Uint8Array) => {
    server = await createFakeModelServer(answers)
    const env = {
      TUTTI_MODEL_BASE_URL: server.baseUrl,
      TUTTI_MODEL_API_KEY: key,
      TUTTI_MODEL: 'fake-1',
      OPENAI_API_KEY: 'other',
    }
    return createEmbeddedAdapter({ clock: systemClock, env, maxRetries: 0 }).open(
      { bcId: 'bc-1', config: contractConfig('embedded'), host, ...(exported ? { exported } : {}) },
      never,
    )
  }

  test('streams thoughts, words and calls, runs the tools and gives the results back', async () => {
    const session = await open([
      {
        deltas: [
          { role: 'assistant', reasoning_content: 'I should ' },
          { reasoning_content: 'look.' },
          { content: 'Let me ' },
          { content: 'see.' },
          ...call(0, 'call-a', 'shell', ['{"command":"echo', ' hi; echo', ' x > made.txt"}']),
          ...call(1, 'call-b', 'write_file', ['{"path":"b.txt","content":"b"}']),
        ],
        completionTokens: 17,
      },
      { deltas: [{ content: 'Made both files.' }], completionTokens: 4 },
    ])
    const { events, outcome } = await follow(session, 'Make two files.')
    expect(session.brain).toBe('openai-compatible/fake-1')
    expect(outcome).toEqual({ outcome: 'completed', summary: 'Made both files.' })
    expect(textOf(events, 'thinking_delta')).toBe('I should look.')
    expect(textOf(events, 'text_delta')).toBe('Let me see.Made both files.')
    expect(events.filter((event) => event.type === 'token_delta').map((event) => event.tokens)).toEqual([
      17, 4,
    ])
    const args = events.flatMap((event) =>
      event.type === 'partial_tool_call' && event.callId === 'call-a' ? [event.argsTextDelta] : [],
    )
    expect(args.length).toBeGreaterThan(1)
    expect(args.join('')).toBe('{"command":"echo hi; echo x > made.txt"}')
    expect(events.filter((event) => event.type === 'tool_call_completed')).toMatchObject([
      { callId: 'call-a', toolName: 'shell', outcome: 'ok', result: { exitCode: 0, output: 'hi\n' } },
      { callId: 'call-b', toolName: 'write_file', outcome: 'ok' },
    ])
    expect(new TextDecoder().decode(await host.readFile('b.txt', 10, never))).toBe('b')

    const [first, second] = server.requests
    expect(first?.path).toBe('/v1/chat/completions')
    expect(first?.authorization).toBe(`Bearer ${key}`)
    expect(first?.body).toMatchObject({ model: 'fake-1', stream: true })
    expect(first?.body.messages.at(-1)).toEqual({ role: 'user', content: 'Make two files.' })
    expect(first?.body.tools?.map((tool) => tool.function.name)).toEqual([
      'shell',
      'read_file',
      'write_file',
      'edit_file',
      'todo',
      'ask',
    ])
    expect(second?.body.messages.slice(-3)).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: 'call-a' }, { id: 'call-b' }] },
      { role: 'tool', tool_call_id: 'call-a', content: expect.stringContaining('"exitCode":0') },
      { role: 'tool', tool_call_id: 'call-b' },
    ])
  })

  test('tells the model about a call that fits no tool or schema, and goes on', async () => {
    const session = await open([
      { deltas: [...call(0, 'call-a', 'shell', ['{"cmd":1}']), ...call(1, 'call-b', 'fly', ['{}'])] },
      { deltas: [{ content: 'Sorry.' }] },
    ])
    const { events, outcome } = await follow(session, 'x')
    expect(outcome).toMatchObject({ outcome: 'completed', summary: 'Sorry.' })
    const types = ['tool_call_started', 'tool_call_completed'] as const
    for (const type of types) {
      expect(
        events.filter((event) => event.type === type).map((event) => 'callId' in event && event.callId),
      ).toEqual(['call-a', 'call-b'])
    }
    const results = server.requests[1]?.body.messages.filter((message) => message['role'] === 'tool')
    expect(results?.map((message) => message['tool_call_id'])).toEqual(['call-a', 'call-b'])
  })

  test('tells the model why a tool failed', async () => {
    const session = await open([
      { deltas: call(0, 'call-a', 'read_file', ['{"path":"nowhere.txt"}']) },
      { deltas: [{ content: 'ok' }] },
    ])
    const { events } = await follow(session, 'x')
    expect(events).toContainEqual(expect.objectContaining({ type: 'tool_call_completed', outcome: 'error' }))
    expect(server.requests[1]?.body.messages.at(-1)).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('nowhere.txt'),
    })
  })

  test('keeps the conversation for a follow-up in another session', async () => {
    const first = await open([{ deltas: [{ content: 'Noted.' }] }])
    await follow(first, 'The word is swordfish.')
    const exported = await first.exportSession(never)
    await server.close()
    const second = await open([{ deltas: [{ content: 'swordfish' }] }], exported)
    await follow(second, 'Which word?', never, undefined, 'turn-2')
    expect(server.requests[0]?.body.messages.slice(1)).toEqual([
      { role: 'user', content: 'The word is swordfish.' },
      expect.objectContaining({ role: 'assistant', content: 'Noted.' }),
      { role: 'user', content: 'Which word?' },
    ])
  })

  test('says rate_limited when the provider does', async () => {
    const session = await open([{ status: 429, message: 'Slow down.', headers: { 'retry-after': '7' } }])
    await expect(follow(session, 'x')).rejects.toMatchObject({
      code: 'resource_exhausted',
      message: expect.stringContaining('Slow down.'),
      detail: { reason: 'rate_limited', retryAfterSeconds: 7 },
    })
  })

  test('fails with the words of the provider, never with the key', async () => {
    const session = await open([{ status: 401, message: `Incorrect key: ${key}.` }])
    const { outcome } = await follow(session, 'x')
    expect(outcome).toEqual({
      outcome: 'failed',
      detail: expect.stringMatching(/401.*Incorrect key: \[key\]\./),
    })
  })

  test('fails when nobody answers at the address', async () => {
    const session = await open([])
    await server.close()
    const { outcome } = await follow(session, 'x')
    server = await createFakeModelServer([])
    expect(outcome).toEqual({ outcome: 'failed', detail: expect.stringContaining('did not answer') })
  })

  test('fails when an answer is cut off at the output limit', async () => {
    const session = await open([{ deltas: [{ content: 'half a' }], finishReason: 'length' }])
    expect((await follow(session, 'x')).outcome).toMatchObject({
      outcome: 'failed',
      detail: expect.stringContaining('output limit'),
    })
  })

  test('passes words while the answer is not finished, and hangs up when stopped', async () => {
    const session = await open([{ deltas: [{ content: 'first' }, { content: 'never' }], hangAt: 1 }])
    const stop = new AbortController()
    const turn = follow(session, 'x', stop.signal, (event) => {
      if (event.type === 'text_delta') stop.abort()
    })
    await expect(turn).rejects.toMatchObject({ code: 'cancelled' })
    await server.clientLeft
  })

  test('hangs up when the reader leaves in the middle', async () => {
    const session = await open([{ deltas: [{ content: 'first' }, { content: 'never' }], hangAt: 1 }])
    const seen: string[] = []
    for await (const event of session.runTurn({ turnId: 'turn-1', prompt: 'x', continued: false }, never)) {
      seen.push(event.type)
      if (event.type === 'text_delta') break
    }
    await server.clientLeft
    expect(seen).toEqual(['step_started', 'text_delta'])
  })
})

function call(index: number, id: string, name: string, pieces: readonly string[]): FakeDelta[] {
  return pieces.map((piece, at) => ({
    tool_calls: [
      at === 0
        ? { index, id, type: 'function', function: { name, arguments: piece } }
        : { index, function: { arguments: piece } },
    ],
  }))
}

async function follow(
  session: AgentSession,
  prompt: string,
  signal: AbortSignal = never,
  onEvent: (event: TaskEvent) => void = () => {},
  turnId = 'turn-1',
): Promise<{ events: TaskEvent[]; outcome: TurnOutcome }> {
  const events: TaskEvent[] = []
  const running = session.runTurn({ turnId, prompt, continued: false }, signal)
  for (;;) {
    const step = await running.next()
    if (step.done) return { events, outcome: step.value }
    events.push(step.value)
    onEvent(step.value)
  }
}

function textOf(events: readonly TaskEvent[], type: 'text_delta' | 'thinking_delta'): string {
  return events.map((event) => (event.type === type ? event.text : '')).join('')
}
