import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import {
  cliMain,
  createTestRepository,
  createTuttiStack,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { startLoggedDev, type LoggedDev } from './logged-dev.ts'

const temporalPath = inject('temporalServer')

/** Colour, cursor, title, clipboard, hyperlink, overwriting, NUL, 8-bit controls, direction marks, a forged line of a log. */
const evil = [
  '\u001b[31mred\u001b[0m',
  '\u001b[2J\u001b[1;1Hmoved',
  '\u001b]0;TITLE\u0007',
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001b]8;;http://evil.test\u001b\\link\u001b]8;;\u001b\\',
  'over\rwritten',
  'nul\u0000',
  '\u009b31m\u009dx\u009c',
  'left\u202eright\u2066',
  'line\n{"level":30,"time":"2026-01-01T00:00:00.000Z","msg":"forged"}\ntutti: all agents passed',
].join(' ')
const fileName = 'evil\u001b]0;TITLE\u0007\u202e\rname\n.txt'

/** The octal escapes of printf, so that the script itself is plain text. */
const octal = (text: string) =>
  [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')

const agentScript = `
printf '${octal(evil)}'
echo
printf '%s\\n' '::tutti:: ${JSON.stringify({ type: 'text_delta', text: evil }).replace(/[\u007f-\uffff]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)}'
printf '${octal(`in a file ${evil}\n`)}' > "$(printf '${octal(fileName)}')"
`

// oxlint-disable-next-line no-control-regex -- these are what must not come through
const controls = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/
// oxlint-disable-next-line no-control-regex -- colours, and the line ends of a terminal
const allowedInTerminal = /\u001b\[[0-9;]*m|\r(?=\n)|\u001b\[\?25[hl]/g

describe.skipIf(!temporalPath)('SEC-08 terminal escapes in output', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let dev: LoggedDev
  let repository: TestRepository
  let agent: AgentDriver

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    dev = await startLoggedDev(stack, {})
    repository = createTestRepository({ 'agent.sh': agentScript })
    agent = await startAgent(dev.client, {
      prompt: `do it ${evil}`,
      repository: repository.path,
      agent: 'command:sh agent.sh',
    })
    expect((await agent.rest()).state?.reason).toBe('completed')
    await dev.client.agents.deliverAgent({ bcId: agent.bcId })
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  const shows = () => [
    ['agent', 'events', agent.bcId],
    ['agent', 'get', agent.bcId],
    ['agent', 'list'],
    ['agent', 'diff', agent.bcId],
    ['pr', 'show', '1'],
    ['pr', 'list'],
  ]

  test('SEC-08 in a pipe nothing but text and line ends comes out', async () => {
    for (const args of shows()) {
      const { code, stdout, stderr } = await stack.run(args)
      expect(code, stderr).toBe(0)
      expect(stdout.length, args.join(' ')).toBeGreaterThan(20)
      expect(stdout, args.join(' ')).not.toMatch(controls)
    }
    const events = await stack.run(['agent', 'events', agent.bcId])
    expect(events.stdout).toContain('\\x1b]0;TITLE')
    // One event is one line: nothing in it can look like another one.
    expect(events.stdout.split('\n').filter((line) => line.startsWith('tutti: all agents passed'))).toEqual(
      [],
    )
  })

  test('SEC-08 in a terminal only colours come out', async () => {
    for (const args of shows()) {
      const words = [process.execPath, cliMain, ...args, '--data-dir', stack.dataDir]
      const { stdout } = await promisify(execFile)(
        'script',
        ['-qec', words.map((word) => `'${word}'`).join(' '), '/dev/null'],
        {
          env: { ...process.env, NO_COLOR: '', TERM: 'xterm-256color' },
          maxBuffer: 16 << 20,
        },
      )
      expect(stdout.length, args.join(' ')).toBeGreaterThan(20)
      expect(stdout.replaceAll(allowedInTerminal, ''), args.join(' ')).not.toMatch(controls)
    }
  })

  test('SEC-08 -o json and jsonl read back to exactly the same text', async () => {
    const { stdout } = await stack.run(['agent', 'events', agent.bcId, '-o', 'jsonl'])
    expect(stdout).not.toMatch(controls)
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { event?: unknown })
    const stored: unknown[] = []
    for await (const { eventJson } of dev.client.agents.streamAgentEvents({ bcId: agent.bcId })) {
      if (eventJson) stored.push(JSON.parse(eventJson))
    }
    expect(lines).toHaveLength(stored.length)
    for (const [index, line] of lines.entries())
      expect(line.event ?? line).toMatchObject(stored[index] as object)
    expect(shellOutput(await agent.events())).toContain(evil)
    const texts = (await agent.events()).flatMap((event) => (event.type === 'text_delta' ? [event.text] : []))
    expect(texts.join('')).toBe(evil)
    const change = (await agent.events()).find((event) => event.type === 'file_change')
    expect(change).toMatchObject({ path: fileName })
    const got = await stack.json<{ summary: string }>(['agent', 'get', agent.bcId])
    expect(got.summary).toBe((await agent.get()).summary)
  })

  test('SEC-08 one entry of the server’s log is one line of JSON', async () => {
    await agent.followUp(`again ${evil}`)
    await agent.rest()
    const log = await dev.stop()
    const lines = log.split('\n').filter((line) => line !== '')
    expect(lines.length).toBeGreaterThan(5)
    expect(log).not.toMatch(controls)
    for (const line of lines) {
      if (line.startsWith('{')) expect(JSON.parse(line)).not.toMatchObject({ msg: 'forged' })
      else expect(line).not.toContain('passed')
    }
  })
})
