import type { AgentConfig } from '@tutti/core'
import { isRunning } from '@tutti/processes'
import type { TaskEvent } from '@tutti/protocol'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AgentAdapter, AgentHost, AgentSession, TurnOutcome } from './port.ts'

/** One thing that an agent under test has to do. */
export type ContractStep =
  | { readonly run: string }
  /** Asks, waits, and writes the answer into the file `answer.txt`. */
  | { readonly ask: string; readonly options: readonly [string, string] }
  | { readonly fail: string }

export interface AgentContract {
  readonly adapter: AgentAdapter
  /** A host that really runs processes. */
  createHost(): Promise<AgentHost & { readonly toolEndedCount: number; dispose(): Promise<void> }>
  /** How this agent is told to do exactly these steps. */
  does(steps: readonly ContractStep[]): { readonly agentSpec: string; readonly prompt: string }
  /** How this agent is told to say or print its own prompt, which holds `text`. */
  echoes(text: string): { readonly agentSpec: string; readonly prompt: string }
}

const never = new AbortController().signal
const waitFor = (file: string) => `while [ ! -e ${file} ]; do sleep 0.02; done`

/** What every agent adapter must do. */
export function testAgentContract(name: string, contract: AgentContract): void {
  describe(`agent: ${name}`, () => {
    let host: Awaited<ReturnType<AgentContract['createHost']>>
    beforeEach(async () => {
      host = await contract.createHost()
    })
    afterEach(async () => host.dispose())

    const open = (agentSpec: string, exported?: Uint8Array) =>
      contract.adapter.open(
        { bcId: 'bc-1', config: contractConfig(agentSpec), host, ...(exported ? { exported } : {}) },
        never,
      )
    const start = async (steps: readonly ContractStep[]) => {
      const { agentSpec, prompt } = contract.does(steps)
      const session = await open(agentSpec)
      return { session, prompt }
    }

    test('says what happens while it happens', async () => {
      const { session, prompt } = await start([{ run: `echo first; ${waitFor('go')}; echo last` }])
      const seen: TaskEvent[] = []
      const outcome = await follow(session, prompt, never, async (event) => {
        seen.push(event)
        // The program goes on only when its first words have been seen here.
        if (outputOf([event]).includes('first')) await host.writeFile('go', new Uint8Array(), never)
      })
      expect(outcome.outcome).toBe('completed')
      expect(outputOf(seen)).toBe('first\nlast\n')
    })

    test('opens and closes each tool call once, its output in between, its files captured before the end', async () => {
      const { session, prompt } = await start([{ run: 'echo out; echo err >&2; echo x > made.txt' }])
      const open = new Set<string>()
      const strays: TaskEvent[] = []
      let closed = 0
      await follow(session, prompt, never, async (event) => {
        if (event.type === 'tool_call_started') open.add(event.callId)
        if (event.type === 'shell_output_delta' && !open.has(event.callId)) strays.push(event)
        if (event.type !== 'tool_call_completed') return
        expect(event.outcome).toBe('ok')
        expect(open.delete(event.callId)).toBe(true)
        closed += 1
        expect(host.toolEndedCount).toBe(closed)
      })
      expect(strays).toEqual([])
      expect(closed).toBe(1)
      expect(open.size).toBe(0)
      expect(text(await host.readFile('made.txt', 100, never))).toBe('x\n')
    })

    test('ends by cancelled after an abort, and leaves no process behind, also none that ignores SIGTERM', async () => {
      const { session, prompt } = await start([
        { run: `trap '' TERM; echo $$ > pid; sleep 300 & echo $! > child; echo ready; wait; sleep 300` },
      ])
      const stop = new AbortController()
      const turn = follow(session, prompt, stop.signal, async (event) => {
        if (outputOf([event]).includes('ready')) stop.abort()
      })
      await expect(turn).rejects.toMatchObject({ name: 'TuttiError', code: 'cancelled' })
      for (const file of ['pid', 'child']) {
        const pid = Number(text(await host.readFile(file, 100, never)))
        await expect.poll(() => isRunning(pid)).toBe(false)
      }
    })

    test('leaves no process behind when the reader leaves in the middle', async () => {
      const { session, prompt } = await start([{ run: 'echo $$ > pid; echo ready; sleep 300' }])
      for await (const event of session.runTurn({ turnId: 'turn-1', prompt, continued: false }, never)) {
        if (outputOf([event]).includes('ready')) break
      }
      const pid = Number(text(await host.readFile('pid', 100, never)))
      await expect.poll(() => isRunning(pid)).toBe(false)
    })

    test('asks, waits for the answer and goes on with it; a question is answered once', async () => {
      const { session, prompt } = await start([{ ask: 'Which "colour"?', options: ['red', 'blue'] }])
      const questions: TaskEvent[] = []
      const outcome = await follow(session, prompt, never, async (event) => {
        if (event.type !== 'agent_question') return
        questions.push(event)
        expect(() => session.answer('unknown', 'x')).toThrow(expect.objectContaining({ code: 'not_found' }))
        session.answer(event.questionId, 'blue; "quoted" $(false)')
        expect(() => session.answer(event.questionId, 'red')).toThrow(
          expect.objectContaining({ code: 'not_found' }),
        )
      })
      expect(outcome).toMatchObject({ outcome: 'completed' })
      expect(questions).toMatchObject([{ text: 'Which "colour"?', options: ['red', 'blue'] }])
      expect(text(await host.readFile('answer.txt', 1000, never)).trim()).toBe('blue; "quoted" $(false)')
    })

    test('stops waiting for an answer when the turn is aborted', async () => {
      const { session, prompt } = await start([{ ask: 'Which?', options: ['red', 'blue'] }])
      const stop = new AbortController()
      const turn = follow(session, prompt, stop.signal, async (event) => {
        if (event.type === 'agent_question') stop.abort()
      })
      await expect(turn).rejects.toMatchObject({ code: 'cancelled' })
    })

    test('ends as failed with what went wrong', async () => {
      const { session, prompt } = await start([{ run: 'true' }, { fail: 'the tests cannot be built' }])
      const outcome = await follow(session, prompt, never)
      expect(outcome.outcome).toBe('failed')
      expect(outcome.detail).toContain('the tests cannot be built')
      expect(Buffer.byteLength(outcome.detail ?? '')).toBeLessThanOrEqual(4096)
    })

    test('passes bytes that are not UTF-8 as replacement characters and never cuts a character', async () => {
      const { session, prompt } = await start([
        {
          run: `printf '\\303'; echo >&2; sleep 0.1; printf '\\251\\377\\360\\237'; sleep 0.1; printf '\\216\\265\\n'`,
        },
      ])
      const seen: TaskEvent[] = []
      await follow(session, prompt, never, async (event) => void seen.push(event))
      expect(outputOf(seen)).toBe('é\uFFFD🎵\n')
    })

    test('passes ten thousand lines, in order and whole', async () => {
      const { session, prompt } = await start([
        { run: 'i=0; while [ $i -lt 10000 ]; do echo "line $i"; i=$((i+1)); done' },
      ])
      const seen: TaskEvent[] = []
      const outcome = await follow(session, prompt, never, async (event) => void seen.push(event))
      expect(outputOf(seen)).toBe(Array.from({ length: 10_000 }, (_, i) => `line ${i}\n`).join(''))
      expect(Buffer.byteLength(outcome.summary ?? '')).toBeLessThanOrEqual(2048)
    })

    test('takes a prompt as text, whatever is in it', async () => {
      const awkward = `it's "quoted" $(touch owned) \`touch owned\` \\ {prompt} ; | & > owned\n\n  second line é🎵 --help`
      const { agentSpec, prompt } = contract.echoes(awkward)
      const seen: TaskEvent[] = []
      const outcome = await follow(
        await open(agentSpec),
        prompt,
        never,
        async (event) => void seen.push(event),
      )
      expect(outcome.outcome).toBe('completed')
      expect(outputOf(seen) + wordsOf(seen)).toContain(awkward)
      await expect(host.readFile('owned', 10, never)).rejects.toMatchObject({ code: 'not_found' })
    })

    test('goes on in a later session with what the earlier one exported', async () => {
      const { agentSpec, prompt } = contract.does([{ run: 'echo one >> log.txt' }])
      const first = await open(agentSpec)
      await follow(first, prompt, never)
      const exported = await first.exportSession(never)
      await first.close(never)
      const second = await open(agentSpec, exported)
      const next = contract.does([{ run: 'echo two >> log.txt' }])
      expect(await follow(second, next.prompt, never, undefined, 'turn-2')).toMatchObject({
        outcome: 'completed',
      })
      expect(text(await host.readFile('log.txt', 100, never))).toBe('one\ntwo\n')
    })
  })
}

/** An agent's configuration with nothing but its spec, for tests of adapters. */
export function contractConfig(agentSpec: string): AgentConfig {
  return {
    version: 1,
    repository: 'contract',
    ref: '',
    agentSpec,
    promptSuffix: '',
    setupCommand: '',
    readyTimeoutMs: 1000,
    checkCommand: '',
    checkTimeoutMs: 1000,
    turnTimeoutMs: 60_000,
    stallTimeoutMs: 60_000,
    onQuestion: 'wait',
    questionTimeoutMs: 60_000,
    sandbox: {
      isolation: 'none',
      allowHosts: [],
      allowNetwork: false,
      envNames: [],
      envValues: {},
      mounts: [],
      limits: { memoryBytes: 1, pids: 1, cpuPercent: 1, diskBytes: 1, files: 1, fileBytes: 1 },
    },
  }
}

/** Runs one turn to its end. */
async function follow(
  session: AgentSession,
  prompt: string,
  signal: AbortSignal,
  onEvent: (event: TaskEvent) => Promise<void> = async () => {},
  turnId = 'turn-1',
): Promise<TurnOutcome> {
  const turn = session.runTurn({ turnId, prompt, continued: false }, signal)
  for (;;) {
    const step = await turn.next()
    if (step.done) return step.value
    await onEvent(step.value)
  }
}

function outputOf(events: readonly TaskEvent[]): string {
  return events
    .map((event) =>
      event.type === 'shell_output_delta' && event.event.case === 'stdout' ? event.event.data : '',
    )
    .join('')
}

function wordsOf(events: readonly TaskEvent[]): string {
  return events.map((event) => (event.type === 'text_delta' ? event.text : '')).join('')
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes)
}
