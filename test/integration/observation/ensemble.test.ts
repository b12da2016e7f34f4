import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { spanIdsOf, type AgentId, type EnsembleId } from '@tutti/core'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { RunJson } from '../../cases/run-json.ts'
import { startCollectorDouble, type CollectorDouble, type ReceivedSpan } from './collector-double.ts'

const temporalPath = inject('temporalServer')
const why = inject('sandboxMissing')

/** Words that stand for what must never be in traces or log lines. */
const prompt = 'prompt-word-7f3a make a file'
const secret = 'secret-value-91c2'
const said = 'said-by-the-agent-55d0'

describe.skipIf(!temporalPath || why !== '')('observing an ensemble', { timeout: 120_000 }, () => {
  let collector: CollectorDouble
  let stack: TuttiStack
  let repository: TestRepository
  let result: RunJson
  let lines: readonly string[]

  beforeAll(async () => {
    collector = await startCollectorDouble()
    repository = createTestRepository({ 'a.txt': 'a\n' })
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: { LOG_LEVEL: 'info', OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, WORD_OF_TEST: secret },
    })
    const command = `command:sh -c 'echo ${said}; test -n "$WORD_OF_TEST" && echo made > made.txt'`
    const { stdout, stderr, code } = await stack.cli([
      'run',
      prompt,
      '--repo',
      repository.path,
      '--agents',
      '2',
      '--agent',
      command,
      '--env',
      'WORD_OF_TEST',
      '--check',
      'test -f made.txt',
      '-o',
      'json',
    ]).done
    expect(code, stderr).toBe(0)
    result = JSON.parse(stdout) as RunJson
    lines = readFileSync(join(stack.dataDir, 'server.log'), 'utf8').trimEnd().split('\n')
  }, 120_000)

  afterAll(async () => {
    await stack?.remove()
    await collector?.close()
    repository?.remove()
  })

  const root = () => spanIdsOf(result.ensemble_id as EnsembleId)
  const ours = () => collector.spans.filter(({ traceId }) => traceId === root().traceId)
  const named = (name: string) => ours().filter((span) => span.name === name)

  test('the ensemble is one trace, with the ids that follow from its own', () => {
    expect(result).toMatchObject({ phase: 'COMPLETED', reason: 'completed' })
    expect(named('ensemble')).toMatchObject([
      { spanId: root().spanId, attributes: { ensemble_id: result.ensemble_id, phase: 'COMPLETED' } },
    ])
    expect(named('ensemble')[0]!.parentSpanId ?? '').toBe('')
    // Everything about it is in that trace; other traces are only calls of the API.
    const elsewhere = collector.spans.filter(({ traceId }) => traceId !== root().traceId)
    expect(elsewhere.filter(({ name }) => !/^(tutti|aiserver)\.v1\.\w+\/\w+$/.test(name))).toEqual([])
    expect(
      elsewhere.filter(({ attributes }) => 'bc_id' in attributes || 'ensemble_id' in attributes),
    ).toEqual([])
  })

  test('every span hangs below the root, by spans that there are', () => {
    const byId = new Map<string, ReceivedSpan>(ours().map((span) => [span.spanId, span]))
    expect(byId.size).toBe(ours().length)
    for (const span of ours()) {
      let above: ReceivedSpan | undefined = span
      for (let steps = 0; above && above.spanId !== root().spanId && steps < 10; steps += 1)
        above = byId.get(above.parentSpanId ?? '')
      expect(above?.spanId, span.name).toBe(root().spanId)
    }
  })

  test('it holds the API, the phases, the agents, their activities and the calls of agent servers', () => {
    expect(named('start ensemble')).toHaveLength(1)
    const [linked] = named('start ensemble')[0]!.links!
    expect(collector.spans.find(({ spanId }) => spanId === linked!.spanId)!.name).toBe(
      'aiserver.v1.BackgroundComposerService/StartParallelAgentWorkflow',
    )
    for (const phase of ['STARTING', 'CHILDREN_RUNNING', 'GATHERING', 'SYNTHESIZING'])
      expect(named(phase), phase).toHaveLength(1)
    for (const activity of ['gather', 'combine', 'verify', 'deliver'])
      expect(named(activity).length, activity).toBeGreaterThan(0)
    for (const { bc_id: bcId } of result.attempts) {
      const agent = named('agent').find(({ attributes }) => attributes['bc_id'] === bcId)!
      expect(agent.spanId).toBe(spanIdsOf(bcId as AgentId).spanId)
      for (const activity of ['admit', 'provisionSandbox', 'runTurn', 'checkpointTurn', 'checkAttempt']) {
        const span = named(activity).find(({ parentSpanId }) => parentSpanId === agent.spanId)
        expect(span?.attributes, activity).toMatchObject({
          bc_id: bcId,
          ensemble_id: result.ensemble_id,
          owner: 'local',
          turn: 1,
          incarnation: 1,
          attempt: 1,
        })
      }
      const [turn] = named('runTurn').filter(({ parentSpanId }) => parentSpanId === agent.spanId)
      const below = named('agent-server exec').filter(({ parentSpanId }) => parentSpanId === turn!.spanId)
      expect(below.length).toBeGreaterThan(0)
      for (const { attributes } of below) expect(attributes).toEqual({ exit_code: 0 })
    }
    expect(named('agent-server hydrate').length).toBeGreaterThanOrEqual(2)
    expect(named('agent-server capture').length).toBeGreaterThanOrEqual(2)
  })

  test('times are in order: the root holds its phases, which follow one another', () => {
    const at = (name: string) => named(name).map((span) => BigInt(span.startTimeUnixNano))[0]!
    const end = (name: string) => named(name).map((span) => BigInt(span.endTimeUnixNano))[0]!
    expect(at('ensemble')).toBeLessThanOrEqual(at('STARTING'))
    expect(end('STARTING')).toBe(at('CHILDREN_RUNNING'))
    expect(end('SYNTHESIZING')).toBe(end('ensemble'))
  })

  test('SEC-05 no prompt, secret or output in what is exported', () => {
    const everything = collector.bodies.join('\n')
    // What the search would find if it were there.
    expect(everything).toContain(result.ensemble_id)
    for (const word of ['prompt-word', secret, said, 'made.txt', repository.path])
      expect(everything, word).not.toContain(word)
  })

  test('a log line is one line of JSON and says who it is about', () => {
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    for (const { bc_id: bcId } of result.attempts) {
      const ended = entries.filter((entry) => entry['msg'] === 'activity ended' && entry['bc_id'] === bcId)
      expect(ended.map((entry) => entry['activity'])).toEqual(
        expect.arrayContaining(['admit', 'provisionSandbox', 'runTurn', 'checkpointTurn', 'recordAttempt']),
      )
      for (const entry of ended)
        expect(entry).toMatchObject({
          owner: 'local',
          ensemble_id: result.ensemble_id,
          turn: 1,
          incarnation: 1,
        })
    }
    expect(entries.filter((entry) => entry['activity'] === 'deliver')).toMatchObject([
      { ensemble_id: result.ensemble_id, owner: 'local' },
    ])
  })

  test('SEC-05 no prompt, secret or output in the log', () => {
    const everything = lines.join('\n')
    expect(everything).toContain(result.ensemble_id)
    for (const word of ['prompt-word', secret, said]) expect(everything, word).not.toContain(word)
  })

  // Last: it writes into the same trace.
  test('a follow-up after the end, and a crash in it, join the same trace', async () => {
    const [{ bc_id: bcId } = { bc_id: '' }] = result.attempts
    const before = ours().length
    await stack.start({ TUTTI_CRASH_AT: 'turn.checkpoint:before' })
    await stack.json(['agent', 'send', bcId, 'once more'])
    expect(await stack.ended()).toBeNull()
    await stack.start()
    const events = await stack.run(['agent', 'events', bcId, '--follow', '-o', 'jsonl'])
    expect(events.stdout).toContain('turn_interrupted')
    expect(await stack.stop()).toBe(0)
    const later = ours().slice(before)
    const of = (name: string) => later.filter((span) => span.name === name)
    // The first life of the turn is incarnation 2; the crash took what had not been sent of it.
    expect(of('runTurn').map(({ attributes }) => attributes['incarnation'])).toContain(3)
    for (const span of [...of('provisionSandbox'), ...of('runTurn'), ...of('checkpointTurn')]) {
      expect(span.parentSpanId).toBe(spanIdsOf(bcId as AgentId).spanId)
      expect(span.attributes).toMatchObject({ bc_id: bcId, ensemble_id: result.ensemble_id, turn: 2 })
    }
    const strays = collector.spans.filter(
      ({ traceId, attributes }) => attributes['bc_id'] === bcId && traceId !== root().traceId,
    )
    expect(strays).toEqual([])
  })
})
