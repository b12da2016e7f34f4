import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Isolation } from '@tutti/proto'
import { createTestRepository, createTuttiStack, type TestRepository, type TuttiStack } from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { startLoggedDev, type LoggedDev } from './logged-dev.ts'
import { script } from './script.ts'
import { canaryPrefix, formsOf, probeProgram } from './secret-probe.ts'

const temporalPath = inject('temporalServer')

/** Credentials as a worker, an API and a forge have them. */
const secretNames = [
  'ANTHROPIC_API_KEY',
  'OPENAI_API_KEY',
  'TUTTI_MODEL_API_KEY',
  'GITHUB_TOKEN',
  'GITLAB_TOKEN',
  'AWS_SECRET_ACCESS_KEY',
  'TEMPORAL_API_KEY',
  'TUTTI_API_KEYS',
  'SSH_AUTH_SOCK',
  'SOMETHING_ELSE',
]
const canary = (name: string) => `${canaryPrefix}-${name.toLowerCase()}-${randomBytes(12).toString('hex')}`

interface Probe {
  readonly files: number
  readonly processes: number
  readonly hits: readonly string[]
}

describe.skipIf(!temporalPath)('SEC-05 secrets in the agent’s reach', { timeout: 180_000 }, () => {
  let stack: TuttiStack
  let dev: LoggedDev
  let repository: TestRepository
  let agent: AgentDriver
  const secrets = Object.fromEntries(secretNames.map((name) => [name, canary(name)]))
  const declared = canary('deploy')

  beforeAll(async () => {
    stack = await createTuttiStack({ temporalPath: temporalPath!, env: { TUTTI_MAX_SANDBOXES: '4' } })
    dev = await startLoggedDev(stack, { ...secrets, DEPLOY_TOKEN: declared })
    repository = createTestRepository({ 'README.md': 'hello\n', 'probe.mjs': probeProgram })
    agent = await startAgent(dev.client, {
      prompt: script(
        'run: node probe.mjs',
        'run: env | cut -d= -f1 | sort; git remote -v; git config --list --show-origin; cat .git/config; ls -la ~ /tmp /',
        'write: made.txt 1',
      ),
      repository: repository.path,
      agent: 'embedded:scripted',
      options: {
        agent: { spec: 'embedded:scripted' },
        sandbox: { isolation: Isolation.BUBBLEWRAP, env: ['DEPLOY_TOKEN'] },
      },
    })
    await agent.rest()
  })
  afterAll(async () => {
    await stack.remove()
    repository.remove()
  })

  const output = async () => shellOutput(await agent.events())
  const probes = async () =>
    [...(await output()).matchAll(/^PROBE (.*)$/gm)].map((match) => JSON.parse(match[1]!) as Probe)

  /** The declared secret is there under its own name, in environments only; nothing else is found. */
  function expectOnlyDeclared(probe: Probe): void {
    expect(probe.files).toBeGreaterThan(20)
    expect(probe.processes).toBeGreaterThan(1)
    expect(probe.hits).toContain('env plain DEPLOY_TOKEN')
    expect(probe.hits.filter((hit) => !/^(env|proc-environ) plain DEPLOY_TOKEN$/.test(hit))).toEqual([])
  }

  test('SEC-05 in a fresh sandbox nothing is found but what was declared, under its name', async () => {
    expect((await agent.get()).state?.reason).toBe('completed')
    const found = await probes()
    expect(found).toHaveLength(1)
    expectOnlyDeclared(found[0]!)
    const text = await output()
    expect(text).toContain('DEPLOY_TOKEN\n')
    for (const name of secretNames) expect(text).not.toContain(`${name}\n`)
    expect(text).not.toContain(repository.path)
    expect(text).not.toContain(stack.dataDir)
    expect(text).not.toContain(dev.key)
  })

  test('SEC-05 in a resumed sandbox neither, and the work can be pushed', async () => {
    const { bcId } = agent
    await dev.client.composers.archiveBackgroundComposer({ bcId })
    await dev.client.composers.resumeBackgroundComposer({ bcId })
    await agent.followUp(script('run: node probe.mjs'))
    const rest = await agent.rest()
    expect(rest.state?.incarnation).toBe(2)
    const found = await probes()
    expect(found).toHaveLength(2)
    expectOnlyDeclared(found[1]!)
    const { branch } = await dev.client.agents.deliverAgent({ bcId })
    expect(repository.git('show', `${branch}:made.txt`)).toBe('1\n')
  })

  test('SEC-05 no secret is in events, Temporal’s history, blobs, stores or the server’s log', async () => {
    const { bcId } = agent
    const all = [...Object.values(secrets), declared, dev.key]
    const forms = all.flatMap((secret) => formsOf(secret))
    const expectClean = (where: string, bytes: Buffer) => {
      for (const form of forms) expect(bytes.includes(form), where).toBe(false)
    }
    expectClean('events', Buffer.from(JSON.stringify(await agent.events())))

    const temporal = (...args: readonly string[]) =>
      execFileSync(temporalPath!, [...args, '--address', dev.temporalAddress, '-n', 'default'], {
        encoding: 'utf8',
        maxBuffer: 256 << 20,
      })
    const history = temporal('workflow', 'show', '--workflow-id', `agent/${bcId}`, '-o', 'json')
    expect(history).toContain('workflowExecutionStartedEventAttributes')
    expectClean('history', Buffer.from(history))
    const payloads = [...history.matchAll(/"data": ?"([A-Za-z0-9+/=]+)"/g)]
    for (const [, data] of payloads) expectClean('payload', Buffer.from(data!, 'base64'))
    expect(payloads.length).toBeGreaterThan(3)

    const log = await dev.stop()
    expect(log).toContain(bcId)
    expectClean('server log', Buffer.from(log))

    let files = 0
    const walk = (folder: string) => {
      for (const name of readdirSync(folder)) {
        const path = join(folder, name)
        const stats = lstatSync(path)
        if (stats.isDirectory()) walk(path)
        else if (stats.isFile() && name !== 'local-key') {
          files += 1
          expectClean(path, readFileSync(path))
        }
      }
    }
    walk(stack.dataDir)
    expect(files).toBeGreaterThan(10)
    expect(existsSync(join(stack.dataDir, 'tutti.db'))).toBe(true)
  })
})
