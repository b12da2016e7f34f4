import { contractConfig } from '@tutti/agent/contract'
import type { TurnOutcome } from '@tutti/agent'
import { systemClock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import { createLocalAgentHost, type LocalAgentHost } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createEmbeddedAdapter } from './embedded-adapter.ts'

const never = new AbortController().signal

describe('the embedded agent with the scripted brain', () => {
  let host: LocalAgentHost
  beforeEach(async () => {
    host = await createLocalAgentHost()
  })
  afterEach(async () => host.dispose())

  const open = (exported?: Uint8Array, maxSteps = 50, news = '') =>
    createEmbeddedAdapter({ clock: systemClock, env: {}, maxSteps }).open(
      {
        bcId: 'bc-1',
        config: contractConfig('embedded:scripted'),
        host: { ...host, news: newsOnce(news) },
        ...(exported ? { exported } : {}),
      },
      never,
    )

  const read = async (path: string) => new TextDecoder().decode(await host.readFile(path, 1 << 20, never))

  test('works with every tool, and says each step in order', async () => {
    const { events, outcome } = await follow(await open(), {
      prompt: [
        'think: first the list',
        'todo: write; edit',
        'write: dir/a.txt one two',
        'edit: dir/a.txt | two | three',
        'try: cat dir/a.txt; exit 4',
        'read: dir/a.txt',
        'say: all done',
      ].join('\n'),
    })
    expect(outcome).toEqual({ outcome: 'completed', summary: 'scripted: all done' })
    expect(await read('dir/a.txt')).toBe('one three\n')
    const ended = events.filter((event) => event.type === 'tool_call_completed')
    expect(ended.map(({ toolName, outcome: end, result }) => ({ toolName, end, result }))).toMatchObject([
      { toolName: 'todo', end: 'ok', result: { open: 2 } },
      { toolName: 'write_file', end: 'ok', result: { bytes: 8 } },
      { toolName: 'edit_file', end: 'ok', result: { replaced: 1 } },
      { toolName: 'shell', end: 'error', result: { exitCode: 4, output: 'one three\n' } },
      { toolName: 'read_file', end: 'ok', result: { content: 'one three\n', truncated: false } },
    ])
    const types = events.map((event) => event.type)
    expect(types.filter((type) => type === 'step_started')).toHaveLength(6)
    expect(types.filter((type) => type === 'step_completed')).toHaveLength(6)
    expect(types.slice(0, 2)).toEqual(['step_started', 'thinking_delta'])
    expect(types).toContain('thinking_completed')
    expect(types.indexOf('partial_tool_call')).toBeLessThan(types.indexOf('tool_call_started'))
  })

  test('names itself in what it says, thinks and calls, and claims no tokens', async () => {
    const session = await open()
    expect(session.brain).toBe('scripted')
    const { events } = await follow(session, { prompt: 'think: hm\nrun: true\nsay: hello' })
    expect(textOf(events, 'text_delta')).toBe('scripted: hello\n')
    expect(textOf(events, 'thinking_delta')).toBe('scripted: hm\n')
    const ids = events.flatMap((event) => ('modelCallId' in event ? [event.modelCallId ?? ''] : []))
    expect(ids.length).toBeGreaterThan(2)
    expect(ids.filter((id) => !id.startsWith('scripted-'))).toEqual([])
    expect(events.filter((event) => event.type === 'token_delta')).toEqual([])
  })

  test('gives the arguments of a call in pieces that make up the whole', async () => {
    const { events } = await follow(await open(), { prompt: `write: a.txt ${'x'.repeat(300)}` })
    const pieces = events.flatMap((event) =>
      event.type === 'partial_tool_call' ? [event.argsTextDelta] : [],
    )
    expect(pieces.length).toBeGreaterThan(3)
    const started = events.find((event) => event.type === 'tool_call_started')
    expect(JSON.parse(pieces.join(''))).toEqual(started?.args)
  })

  test('does nothing, and says so, when there is no script', async () => {
    const { events, outcome } = await follow(await open(), { prompt: 'Please fix the tests.' })
    expect(outcome.outcome).toBe('completed')
    expect(outcome.summary).toContain('nothing was done')
    expect(events.filter((event) => event.type === 'tool_call_started')).toEqual([])
  })

  test.each([
    ['run: echo the reason; exit 3', /exit code 3\nthe reason/],
    ['edit: a.txt | x | y', /edit failed.*a\.txt/s],
    ['write: ../out.txt x', /write failed.*outside/s],
    ['sleep: soon', /sleep: soon/],
  ])('fails the turn at an action that fails: %s', async (prompt, detail) => {
    const { outcome } = await follow(await open(), { prompt: `${prompt}\nwrite: after.txt x` })
    expect(outcome).toEqual({ outcome: 'failed', detail: expect.stringMatching(detail) })
    await expect(read('after.txt')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('follows a script that lies in the workspace', async () => {
    await host.writeFile('plan.txt', new TextEncoder().encode('write: a.txt 1\nsay: planned\n'), never)
    const { outcome } = await follow(await open(), { prompt: 'script: plan.txt\nwrite: b.txt 2\nsay: end' })
    expect(outcome.summary).toContain('end')
    expect([await read('a.txt'), await read('b.txt')]).toEqual(['1\n', '2\n'])
  })

  test('puts an answer into later lines, as one quoted word in a command', async () => {
    const session = await open()
    const prompt = 'ask: Which?\nrun: printf %s {answer} > a.txt\nsay: it is {answer}'
    const answer = `it's $(touch owned) | b`
    const { outcome } = await follow(session, { prompt }, never, async (event) => {
      if (event.type === 'agent_question') session.answer(event.questionId, answer)
    })
    expect(outcome.summary).toBe(`scripted: it is ${answer}`)
    expect(await read('a.txt')).toBe(answer)
    await expect(read('owned')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('knows in a follow-up what was said before, also in another session', async () => {
    const first = await open()
    await follow(first, { prompt: 'The code word is swordfish.\nsay: noted' })
    const second = await open(await first.exportSession(never))
    const { events } = await follow(second, { turnId: 'turn-2', prompt: 'echo-context:' })
    expect(textOf(events, 'text_delta')).toContain('message 1 of 2: The code word is swordfish.')
  })

  test('goes on after a cut: finished calls are not repeated, the open one is made again under a new id', async () => {
    const prompt =
      'run: echo one >> log.txt\nrun: echo two >> log.txt; [ -e go ] || sleep 300\nwrite: end.txt x'
    const first = await open()
    const stop = new AbortController()
    const before: TaskEvent[] = []
    let exported = new Uint8Array()
    const cut = follow(first, { prompt }, stop.signal, async (event) => {
      before.push(event)
      if (event.type === 'tool_call_completed' && event.outcome === 'ok') {
        exported = Uint8Array.from(await first.exportSession(never))
      }
      if (event.type === 'tool_call_started' && JSON.stringify(event.args).includes('two')) stop.abort()
    })
    await expect(cut).rejects.toMatchObject({ code: 'cancelled' })
    await host.writeFile('go', new Uint8Array(), never)
    const { events, outcome } = await follow(await open(exported), { prompt, continued: true })
    expect(outcome.outcome).toBe('completed')
    expect((await read('log.txt')).match(/one/g)).toHaveLength(1)
    expect(await read('end.txt')).toBe('x\n')
    const idsBefore = new Set(before.flatMap((event) => ('callId' in event ? [event.callId] : [])))
    expect(events.filter((event) => 'callId' in event && idsBefore.has(event.callId))).toEqual([])
  })

  test('knows what has happened before its first step after a cut, and it is no new task', async () => {
    const prompt = 'write: a.txt 1\nwrite: b.txt 2\necho-context:'
    const first = await open()
    const stop = new AbortController()
    const cut = follow(first, { prompt }, stop.signal, async (event) => {
      if (event.type === 'tool_call_completed') stop.abort()
    })
    await expect(cut).rejects.toMatchObject({ code: 'cancelled' })
    const second = await open(await first.exportSession(never), 50, 'The sandbox was lost.\n\n')
    let atFirstStep = ''
    const { events } = await follow(second, { prompt, continued: true }, never, async (event) => {
      if (event.type === 'step_started' && event.stepId === 1)
        atFirstStep = new TextDecoder().decode(await second.exportSession(never))
    })
    const { messages } = JSON.parse(atFirstStep)
    expect(messages.at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('was lost.') })
    const called = events.flatMap((event) => (event.type === 'tool_call_started' ? [event.args] : []))
    expect(called).toEqual([{ path: 'b.txt', content: '2\n' }])
    expect(textOf(events, 'text_delta').split('The sandbox was lost.')).toHaveLength(2)
  })

  test('closes a call that the stored conversation left open', async () => {
    const state = {
      version: 1,
      turnId: 'turn-1',
      todos: [],
      messages: [
        { role: 'user', content: 'run: echo again > a.txt' },
        {
          role: 'assistant',
          content: [
            {
              type: 'tool-call',
              toolCallId: 'old',
              toolName: 'shell',
              input: { command: 'echo again > a.txt' },
            },
          ],
        },
      ],
    }
    const session = await open(new TextEncoder().encode(JSON.stringify(state)))
    const { outcome } = await follow(session, { prompt: 'run: echo again > a.txt', continued: true })
    expect(outcome.outcome).toBe('completed')
    expect(await read('a.txt')).toBe('again\n')
    const messages = JSON.stringify(JSON.parse(new TextDecoder().decode(await session.exportSession(never))))
    expect(messages).toContain('cut off')
  })

  test('does not think again when only the end of the turn was lost', async () => {
    const first = await open()
    await follow(first, { prompt: 'say: the last word' })
    const { events, outcome } = await follow(await open(await first.exportSession(never)), {
      prompt: 'say: the last word',
      continued: true,
    })
    expect(events).toEqual([])
    expect(outcome).toMatchObject({ outcome: 'completed', summary: expect.stringContaining('the last word') })
  })

  test.for([
    ['nothing else', ''],
    ['news of its user', 'A file has changed.\n\n'],
  ] as const)(
    'is told what it must know in the middle of a turn, once, with %s, and begins the prompt anew',
    async ([, news]) => {
      const turn = { prompt: 'run: echo again >> a.txt', continued: true, notice: 'Look first.\n\n' }
      const first = await open()
      await follow(first, { prompt: turn.prompt })
      const second = await open(await first.exportSession(never), 50, news)
      await follow(second, turn)
      const exported = await second.exportSession(never)
      const { events } = await follow(await open(exported), turn)
      expect(events).toEqual([])
      expect(await read('a.txt')).toBe('again\nagain\n')
      const { messages } = JSON.parse(new TextDecoder().decode(exported))
      const told = JSON.stringify(messages)
      expect(told.split('Look first.')).toHaveLength(2)
      expect(told).toContain(JSON.stringify(news).slice(1, -1))
    },
  )

  test('ends a turn that never ends by its number of steps', async () => {
    const { outcome } = await follow(await open(undefined, 3), { prompt: 'run: true\n'.repeat(10) })
    expect(outcome).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('3 model calls') })
  })

  test('refuses a stored session that it cannot read', async () => {
    for (const text of ['{', '{"version":2,"messages":[],"todos":[],"turnId":""}']) {
      await expect(open(new TextEncoder().encode(text))).rejects.toMatchObject({ code: 'data_loss' })
    }
  })

  test('stops a sleep at once', async () => {
    const stop = new AbortController()
    const turn = follow(await open(), { prompt: 'say: now\nsleep: 300' }, stop.signal, async (event) => {
      if (event.type === 'text_delta') stop.abort()
    })
    await expect(turn).rejects.toMatchObject({ code: 'cancelled' })
  })

  test('shows the model the head and the tail of a long output, and the log all of it', async () => {
    const { events } = await follow(await open(), { prompt: 'run: seq 1 20000' })
    const shown = events.flatMap((event) =>
      event.type === 'tool_call_completed' ? [(event.result as { output: string }).output] : [],
    )[0]
    expect(shown?.length).toBeLessThan(17_000)
    expect(shown).toMatch(/^1\n2\n[^]*characters left out[^]*\n20000\n$/)
    const all = events.map((event) =>
      event.type === 'shell_output_delta' && event.event.case === 'stdout' ? event.event.data : '',
    )
    expect(all.join('')).toBe(Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join(''))
  })
})

/** As a worker gives it. */
function newsOnce(news: string): () => string {
  let left = news
  return () => {
    const given = left
    left = ''
    return given
  }
}

type Session = Awaited<ReturnType<ReturnType<typeof createEmbeddedAdapter>['open']>>

async function follow(
  session: Session,
  turn: { prompt: string; turnId?: string; continued?: boolean },
  signal: AbortSignal = never,
  onEvent: (event: TaskEvent) => Promise<void> = async () => {},
): Promise<{ events: TaskEvent[]; outcome: TurnOutcome }> {
  const events: TaskEvent[] = []
  const running = session.runTurn({ turnId: 'turn-1', continued: false, ...turn }, signal)
  for (;;) {
    const step = await running.next()
    if (step.done) return { events, outcome: step.value }
    events.push(step.value)
    await onEvent(step.value)
  }
}

function textOf(events: readonly TaskEvent[], type: 'text_delta' | 'thinking_delta'): string {
  return events.map((event) => (event.type === type ? event.text : '')).join('')
}
