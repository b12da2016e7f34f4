import type { TuttiClient } from '@tutti/client'
import {
  createTestRepository,
  createTuttiStack,
  importTestImage,
  startPodman,
  type PodmanEngine,
  type RoleProcess,
  type TestRepository,
  type TuttiStack,
} from '@tutti/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { driveAgent, shellOutput, startAgent, type AgentDriver } from './agent-driver.ts'
import { connect } from './connect.ts'
import { list, listingIn } from './recovery-driver.ts'
import { script } from './script.ts'

const temporalPath = inject('temporalServer')
const why = inject('engineMissing')

interface Container {
  readonly Id: string
  readonly State: { readonly Pid: number }
  readonly HostConfig: Readonly<Record<string, unknown>>
}

describe.skipIf(!temporalPath || why !== '')(`sandboxes in containers ${why}`, { timeout: 90_000 }, () => {
  let engine: PodmanEngine
  let stack: TuttiStack
  let client: TuttiClient
  let repository: TestRepository
  let worker: RoleProcess
  let image: string

  beforeAll(async () => {
    engine = await startPodman()
    image = await importTestImage(engine, 'complete')
    stack = await createTuttiStack({
      temporalPath: temporalPath!,
      env: {
        TUTTI_SANDBOXES_PROVIDER: 'docker',
        TUTTI_SANDBOXES_IMAGE: image,
        TUTTI_SANDBOXES_ENGINE: engine.socketPath,
        TUTTI_MAX_SANDBOXES: '2',
        TUTTI_HEARTBEAT_TIMEOUT: '2s',
        TUTTI_CAPTURE_INTERVAL: '300ms',
      },
    })
    await stack.serve('api')
    client = connect(stack)
    repository = createTestRepository({ 'README.md': 'hello\n' })
    worker = await stack.serve('worker')
  })
  afterAll(async () => {
    await stack?.remove()
    await engine?.dispose()
    repository?.remove()
  })

  const start = (prompt: string, sandbox: { allowHosts?: string[] } = {}) =>
    startAgent(client, {
      prompt,
      repository: repository.path,
      agent: 'embedded:scripted',
      options: { sandbox },
    })
  const commands = (...lines: readonly string[]) => script('run: <<EOF', 'set -e', ...lines, 'EOF')
  const containers = async () =>
    (await engine.podman('ps', '--all', '--quiet', '--no-trunc')).split('\n').filter((line) => line !== '')
  /** The container of an agent's newest sandbox; undefined when there is none. */
  const containerOf = async ({ bcId }: AgentDriver): Promise<Container | undefined> => {
    for (const id of await containers()) {
      const [found] = JSON.parse(await engine.podman('inspect', id)) as (Container & {
        readonly Config: { readonly Labels: Readonly<Record<string, string>> }
      })[]
      if (found?.Config.Labels['tutti.key']?.startsWith(`${bcId}/`)) return found
    }
    return undefined
  }
  const begun = (agent: AgentDriver) =>
    agent.waitFor((event) => event.type === 'file_change' && event.path === 'begun')

  test('a turn works in one, with no network, a system that is read-only, no capabilities and its limits; killed, it is recovered', async () => {
    const agent = await start(
      commands(
        'echo 1 > untracked; rm README.md; echo 2 > committed; git add committed; git commit -qm own; ln -s /etc link',
        'if touch /etc/x 2>/dev/null || touch /x 2>/dev/null; then echo writable; fi',
        'echo CAPABILITIES $(grep Cap /proc/self/status | grep -v -c 0000000000000000)',
        'echo NETWORK $(ls /sys/class/net)',
        'id -u',
        list,
      ),
    )
    expect((await agent.rest()).state?.reason).toBe('completed')
    const first = await agent.events()
    expect(shellOutput(first)).toMatch(/^CAPABILITIES 0\nNETWORK lo\n1000\nLISTING /)
    const container = await containerOf(agent)
    expect(container!.HostConfig).toMatchObject({
      ReadonlyRootfs: true,
      NetworkMode: 'none',
      Memory: 2 * 1024 ** 3,
      PidsLimit: 512,
    })

    await agent.followUp(
      commands(
        'if [ -e begun ]; then echo SECOND; git log --format=%s;',
        list,
        'exit; fi; touch begun; sleep 1000',
      ),
    )
    await begun(agent)
    await engine.podman('kill', '--signal', 'KILL', container!.Id)
    expect((await agent.rest()).state?.reason).toBe('completed')
    const all = await agent.events()
    expect(all.filter(({ type }) => type === 'turn_interrupted')).toMatchObject([{ incarnation: 1 }])
    expect(all.filter(({ type }) => type === 'recovery')).toMatchObject([{ incarnation: 2, proven: true }])
    const since = all.slice(first.length)
    expect(shellOutput(since)).toContain('SECOND\nown\nstart\n')
    const { begun: _begun, ...after } = listingIn(since)
    expect(after).toEqual(listingIn(first))
    expect(await containers()).not.toContain(container!.Id)
  })

  test('--allow-host opens the proxy and nothing else', async () => {
    const ask = (url: string) =>
      `node -e 'fetch("${url}").then(async (r) => console.log(r.status, await r.text()), (e) => console.log("failed", e.cause?.code))'`
    const agent = await start(
      commands('echo $(ls /sys/class/net)', ask('http://other.example/'), ask('http://allowed.invalid/')),
      { allowHosts: ['allowed.invalid'] },
    )
    await agent.rest()
    const said = shellOutput(await agent.events())
    expect(said).toMatch(
      /^lo\n403 .*other\.example:80 \(not_allowed\).*\n\n403 .*allowed\.invalid:80 \(unresolved\)/,
    )
  })

  test('a killed worker leaves containers that the next start removes, and none that another worker owns', async () => {
    const lost = await start(commands('touch begun; sleep 1000'))
    await begun(lost)
    const orphan = await containerOf(lost)
    // It cannot notice that its worker is gone.
    await engine.podman('pause', orphan!.Id)
    await worker.kill()
    const other = await stack.serve('worker')
    await expect.poll(containers, { timeout: 20_000 }).not.toContain(orphan!.Id)
    const again = driveAgent(client, lost.bcId)
    await again.waitFor(
      (event) => event.type === 'sandbox' && event.state === 'ready' && event.incarnation === 2,
    )
    const owned = await containerOf(lost)
    worker = await stack.serve('worker')
    expect(await containers()).toContain(owned!.Id)
    await client.agents.stopAgent({ bcId: lost.bcId })
    await again.rest()
    await other.stop()
  })

  test('doctor says what engine and image there are, and what the image has', async () => {
    const { stdout } = await stack.run(['doctor'])
    expect(stdout).toMatch(
      /ok +sandbox +podman [\d.]+; image localhost\/tutti-test:complete with git 2\.\d+\.\d+, glibc 2\.\d+/,
    )
    const origin = /sandboxes\.image +localhost\/tutti-test:complete +environment/
    expect((await stack.run(['config', 'list', '--show-origin'])).stdout).toMatch(origin)
  })

  test('an image without git: the agent says so, and what to do', async () => {
    await worker.stop()
    worker = await stack.serve('worker', {
      TUTTI_SANDBOXES_IMAGE: await importTestImage(engine, 'withoutGit'),
    })
    const agent = await start('write: x 1')
    expect((await agent.rest()).state?.reason).toBe('setup_failed')
    const [end] = (await agent.events()).filter((event) => event.type === 'turn_ended')
    expect(end).toMatchObject({
      detail: expect.stringMatching(
        /:without-git cannot be used: it has no git .* To mend it: add git/,
      ) as string,
    })
  })

  test('a worker without an image does not start', async () => {
    const { code, stderr } = await stack.cli(['serve', 'worker'], { env: { TUTTI_SANDBOXES_IMAGE: '' } }).done
    expect(stderr).toContain('TUTTI_SANDBOXES_IMAGE=NAME')
    expect(code).not.toBe(0)
  })
})
