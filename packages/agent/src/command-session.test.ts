import { systemClock } from '@tutti/core'
import type { TaskEvent } from '@tutti/protocol'
import { createLocalAgentHost, type LocalAgentHost } from '@tutti/testkit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createCommandSession } from './command-session.ts'
import type { AgentHost, AgentSession, HostExecExit, HostExecOutput, TurnOutcome } from './port.ts'

const never = new AbortController().signal

describe('a command at work', () => {
  let local: LocalAgentHost
  beforeEach(async () => {
    local = await createLocalAgentHost()
  })
  afterEach(async () => local.dispose())

  const run = async (
    command: string,
    turn: Partial<{ prompt: string; continued: boolean; notice: string }> = {},
    host: AgentHost = local,
  ) => {
    const session = createCommandSession({ clock: systemClock, bcId: 'bc-7', command, host })
    const events: TaskEvent[] = []
    const running = session.runTurn(
      { turnId: 'turn-1', prompt: 'the prompt', continued: false, ...turn },
      never,
    )
    for (;;) {
      const step = await running.next()
      if (step.done) return { events, outcome: step.value as TurnOutcome }
      events.push(step.value)
    }
  }

  test('gets the prompt on standard input, as a file, and the ids in its environment', async () => {
    const script =
      'cat; printf "|"; cat "$TUTTI_PROMPT_FILE"; printf "|%s|%s|%s" "$TUTTI_BC_ID" "$TUTTI_TURN_ID" "$CI"'
    const { events } = await run(`sh -c '${script}'`)
    expect(stdout(events)).toBe('the prompt|the prompt|bc-7|turn-1|1')
  })

  test('keeps its prompt file out of the workspace', async () => {
    const { events } = await run(`sh -c 'ls -A; echo "$TUTTI_PROMPT_FILE"'`)
    expect(stdout(events).trim()).toBe(`${local.home}/.tutti/turn-1/prompt`)
  })

  test('takes a prompt of a megabyte by file and by standard input', async () => {
    const prompt = 'x'.repeat(1 << 20)
    for (const command of ['wc -c', `sh -c 'wc -c < "$1"' sh {prompt_file}`]) {
      const { events } = await run(command, { prompt })
      expect(stdout(events).trim()).toBe(String(1 << 20))
    }
    await expect(run('echo {prompt}', { prompt })).rejects.toMatchObject({ code: 'invalid_argument' })
  })

  test('is not started again when the turn was cut off after its end', async () => {
    const open = (exported?: Uint8Array) =>
      createCommandSession({
        clock: systemClock,
        bcId: 'bc-7',
        command: "sh -c 'echo x >> log.txt; echo done'",
        host: local,
        ...(exported && { exported }),
      })
    const end = async (session: AgentSession, turnId: string, notice = '') => {
      const running = session.runTurn({ turnId, prompt: 'p', continued: true, notice }, never)
      for (;;) {
        const step = await running.next()
        if (step.done) return step.value
      }
    }
    const first = open()
    const outcome = await end(first, 'turn-1')
    expect(outcome).toEqual({ outcome: 'completed', summary: 'done' })
    const second = open(await first.exportSession(never))
    expect(await end(second, 'turn-1')).toEqual(outcome)
    const lines = async () => new TextDecoder().decode(await local.readFile('log.txt', 100, never))
    expect(await lines()).toBe('x\n')
    await end(second, 'turn-2')
    expect(await lines()).toBe('x\nx\n')
    // What it must know makes it begin anew, once.
    await end(second, 'turn-2', 'Look first.')
    expect(await lines()).toBe('x\nx\nx\n')
    const third = open(await second.exportSession(never))
    expect(await end(third, 'turn-2', 'Look first.')).toEqual(outcome)
    expect(await lines()).toBe('x\nx\nx\n')
    await end(third, 'turn-2', 'Look again.')
    expect(await lines()).toBe('x\nx\nx\nx\n')
  })

  test('is told when the turn goes on after a cut', async () => {
    const { events } = await run('cat', { continued: true })
    expect(stdout(events)).toMatch(/cut off[^]*the prompt$/)
  })

  test('is told what it must know before it goes on', async () => {
    const host = { ...local, news: () => 'A file has changed.\n\n' }
    const { events } = await run('cat', { continued: true, notice: 'Look first.\n\n' }, host)
    expect(stdout(events)).toMatch(/^Look first\.\s+A file has changed\.[^]*cut off[^]*the prompt$/)
  })

  test('says how a missing program becomes visible', async () => {
    const { outcome } = await run('no-such-program-here {prompt}')
    expect(outcome).toMatchObject({
      outcome: 'failed',
      detail: expect.stringMatching(/no-such-program-here.*--mount.*PATH/s),
    })
  })

  test('treats a spawn error of the host like exit code 127', async () => {
    const host: AgentHost = {
      ...local,
      async *exec(request, signal): AsyncGenerator<HostExecOutput, HostExecExit> {
        if (request.argv[0] === 'sh') return yield* local.exec(request, signal)
        throw Object.assign(new Error('spawn tool ENOENT'), { code: 'ENOENT' })
      },
    }
    const { events, outcome } = await run('tool', {}, host)
    expect(outcome).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('--mount') })
    expect(events.at(-1)).toMatchObject({
      type: 'tool_call_completed',
      outcome: 'error',
      result: { exitCode: 127 },
    })
  })

  test('fails with its exit code and the end of what it said', async () => {
    const { outcome, events } = await run(`sh -c 'seq 1 5000 >&2; echo the reason >&2; exit 3'`)
    expect(outcome.detail).toMatch(/^sh ended with exit code 3\.\n[^]*the reason$/)
    expect(Buffer.byteLength(outcome.detail ?? '')).toBeLessThanOrEqual(4096)
    expect(events.at(-1)).toMatchObject({
      type: 'tool_call_completed',
      outcome: 'error',
      result: { exitCode: 3 },
    })
  })

  test('sums up with its last lines, or with its own words when it has some', async () => {
    expect((await run(`printf 'one\\n\\n  \\nDone: two\\n\\n'`)).outcome.summary).toBe('one\nDone: two')
    const words = `echo noise; echo '::tutti:: {"type":"text_delta","text":"All done."}'; echo noise`
    const { events, outcome } = await run('sh {prompt_file}', { prompt: words })
    expect(outcome.summary).toBe('All done.')
    expect(events).toContainEqual({ type: 'text_delta', text: 'All done.' })
    expect(stdout(events)).toBe('noise\nnoise\n')
  })

  test('shows the words of its spec, not the prompt', async () => {
    const { events } = await run('true {prompt}', { prompt: 'long '.repeat(1000) })
    expect(events[0]).toMatchObject({
      type: 'tool_call_started',
      toolName: 'shell',
      args: { command: 'true {prompt}' },
    })
    expect(JSON.stringify(events)).not.toContain('long')
  })

  test('passes ten thousand separate pieces one by one, held by a slow reader, without keeping them', async () => {
    let made = 0
    const host: AgentHost = {
      ...local,
      async *exec(request, signal): AsyncGenerator<HostExecOutput, HostExecExit> {
        if (request.argv[0] === 'sh') return yield* local.exec(request, signal)
        for (; made < 10_000; made += 1)
          yield { stream: 'stdout', bytes: new TextEncoder().encode(`${made}\n`) }
        return { code: 0, timedOut: false }
      },
    }
    const session = createCommandSession({ clock: systemClock, bcId: 'bc-7', command: 'tool', host })
    let deltas = 0
    let ahead = 0
    for await (const event of session.runTurn({ turnId: 't', prompt: '', continued: false }, never)) {
      if (event.type !== 'shell_output_delta' || event.event.case !== 'stdout') continue
      deltas += 1
      ahead = Math.max(ahead, made - deltas)
    }
    expect(deltas).toBe(10_000)
    // Nothing is made before the reader has taken what was there.
    expect(ahead).toBeLessThanOrEqual(1)
  })

  test('fails when an answer cannot be given, instead of waiting for ever', async () => {
    const host: AgentHost = {
      ...local,
      async *exec(request, signal): AsyncGenerator<HostExecOutput, HostExecExit> {
        if (request.argv[2]?.includes('>>')) return { code: 1, timedOut: false }
        return yield* local.exec(request, signal)
      },
    }
    const session = createCommandSession({
      clock: systemClock,
      bcId: 'bc-7',
      command: 'sh {prompt_file}',
      host,
    })
    const prompt = `echo '::tutti:: {"type":"agent_question","questionId":"q","text":"?"}'; sleep 300`
    const turn = session.runTurn({ turnId: 't', prompt, continued: false }, never)
    let step = await turn.next()
    for (; !step.done; step = await turn.next()) {
      if (step.value.type === 'agent_question') session.answer(step.value.questionId, 'yes')
    }
    expect(step.value).toMatchObject({ outcome: 'failed', detail: expect.stringContaining('answer') })
  })
})

function stdout(events: readonly TaskEvent[]): string {
  return events
    .map((event) =>
      event.type === 'shell_output_delta' && event.event.case === 'stdout' ? event.event.data : '',
    )
    .join('')
}
