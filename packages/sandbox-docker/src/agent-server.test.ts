import { execFileSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  agentServerMounts,
  buildAgentServer,
  openEgress,
  startAgentServer,
  type AgentServer,
  type CapturedChange,
} from '@tutti/agent-server'
import { processesMarked } from '@tutti/processes'
import type { HostSandboxProvider, Sandbox } from '@tutti/sandbox'
import { importTestImage, startPodman, type PodmanEngine } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { createDockerSandboxes, type DockerSandboxesOptions } from './docker-sandboxes.ts'
import { testPolicy } from './test-policy.ts'

declare module 'vitest' {
  interface ProvidedContext {
    engineMissing: string
  }
}

const why = inject('engineMissing')
const never = new AbortController().signal

describe.skipIf(why !== '')(`an agent server in a container ${why}`, () => {
  let engine: PodmanEngine
  let options: Omit<DockerSandboxesOptions, 'root'>
  let provider: HostSandboxProvider
  let folder: string
  let commit: string
  let serverPath: string
  let count = 0

  beforeAll(async () => {
    engine = await startPodman()
    const image = await importTestImage(engine, 'complete')
    folder = mkdtempSync(join(tmpdir(), 'tutti docker '))
    const work = join(folder, 'work')
    mkdirSync(work)
    const git = (cwd: string, ...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], { cwd })
        .toString()
        .trim()
    git(work, 'init', '-q', '-b', 'main')
    writeFileSync(join(work, 'README.md'), 'hello\n')
    git(work, 'add', '-A')
    git(work, 'commit', '-q', '-m', 'base')
    commit = git(work, 'rev-parse', 'HEAD')
    git(folder, 'clone', '-q', '--bare', 'work', 'mirror.git')
    serverPath = await buildAgentServer(
      fileURLToPath(new URL('../../../node_modules/.cache/tutti/agent-server', import.meta.url)),
    )
    options = { nodePath: process.execPath, image, socketPath: engine.socketPath }
    provider = createDockerSandboxes({ ...options, root: join(folder, 'sandboxes') })
  })
  afterEach(async () => {
    for (const ref of await provider.list(undefined, never)) await provider.destroy(ref, never)
  })
  afterAll(async () => {
    await engine?.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  const start = async (
    egressFolder?: string,
    limits: Partial<typeof testPolicy.limits> = {},
    from = provider,
  ): Promise<{ sandbox: Sandbox; server: AgentServer }> => {
    count += 1
    const files = { serverPath, sourceObjects: join(folder, 'mirror.git', 'objects') }
    const readOnly = agentServerMounts({ ...files, ...(egressFolder === undefined ? {} : { egressFolder }) })
    const policy = { ...testPolicy, limits: { ...testPolicy.limits, ...limits } }
    const spec = { key: `test/${count}`, owner: 'tester', policy, env: {}, readOnly }
    const sandbox = await from.create(spec, never)
    const server = await startAgentServer({ sandbox, serverPath, egress: egressFolder !== undefined }, never)
    return { sandbox, server }
  }
  const shell = async (server: AgentServer, line: string, signal = never) => {
    let stdout = ''
    const run = server.exec({ argv: ['/bin/sh', '-c', line] }, signal)
    for (;;) {
      const next = await run.next()
      if (next.done) return { ...next.value, stdout }
      stdout += Buffer.from(next.value.bytes).toString()
    }
  }
  const hydrate = (server: AgentServer) =>
    server.hydrate({ commit, branch: 'work', changes: [], contentOf: () => [] as never }, never)

  test('hydrates, runs programs and captures what they changed, large and binary files too', async () => {
    const { server, sandbox } = await start()
    expect((await hydrate(server)).entries).toBe(1)
    const large = randomBytes(9 << 20)
    await server.writeFile('large.bin', large, never)
    const line = 'cat README.md; echo new > new.txt; rm README.md; git status --short; git log --format=%s'
    expect(await shell(server, line)).toMatchObject({
      code: 0,
      stdout: 'hello\n D README.md\n?? large.bin\n?? new.txt\nbase\n',
    })
    const changes: CapturedChange[] = []
    const contents: Buffer[] = []
    const take = async (content: AsyncIterable<Uint8Array>) => {
      contents.push(Buffer.concat(await Array.fromAsync(content)))
    }
    const sink = {
      content: take,
      async change(change: CapturedChange, content: AsyncIterable<Uint8Array> | undefined) {
        changes.push(change)
        if (content) await take(content)
      },
      async skipped() {},
      async gitState(_report: unknown, pack: AsyncIterable<Uint8Array>) {
        await Array.fromAsync(pack)
        return true
      },
      async committed() {},
    }
    const summary = await server.capture(sink, never)
    expect(summary).toMatchObject({ entries: 2, changes: 3 })
    expect(changes.map((change) => change.action).toSorted()).toEqual(['created', 'created', 'deleted'])
    expect(contents.find((content) => content.length === large.length)?.equals(large)).toBe(true)
    await server.close()
    await provider.destroy(sandbox.ref, never)
    expect(await provider.list(undefined, never)).toEqual([])
  })

  test('what does not fit into its disk fails with the name of the limit, or is seen by a look', async () => {
    const large = randomBytes(32 << 20)
    const hash = `sha256_${createHash('sha256').update(large).digest('hex')}` as const
    const state = {
      path: Buffer.from('large'),
      fileType: 'file',
      mode: '100644',
      size: large.length,
    } as const
    const changes: CapturedChange[] = [{ action: 'created', state: { ...state, hash } }]
    const request = { commit, branch: 'work', changes, contentOf: () => parts(large) }
    const limits = { diskBytes: 24 << 20, fileBytes: 64 << 20 }

    const mounted = await start(undefined, limits)
    await expect(mounted.server.hydrate(request, never)).rejects.toMatchObject({
      code: 'resource_exhausted',
      detail: { reason: 'resource_limit', limit: 'disk' },
    })
    expect(await mounted.sandbox.measureDisk()).toBeUndefined()

    const watching = createDockerSandboxes({ ...options, root: join(folder, 'watched'), disk: 'watchdog' })
    const watched = await start(undefined, limits, watching)
    // It may be seen before the look.
    await watched.server.hydrate(request, never).catch(() => {})
    expect(await watched.sandbox.measureDisk()).toBe('disk')
    expect(watched.sandbox.limitHit()).toBe('disk')
    await watched.server.lost
    await watching.destroy(watched.sandbox.ref, never)
  })

  test('one program is ended and its container goes on', async () => {
    const { server, sandbox } = await start()
    await hydrate(server)
    const controller = new AbortController()
    const marker = `TUTTI_SANDBOX_ID=${sandbox.ref.id}`
    const before = processesMarked(marker).length
    const hanging = shell(server, 'trap "" TERM; sleep 1000 & echo up; wait', controller.signal)
    const ended = hanging.then(
      () => 'ended',
      () => 'cancelled',
    )
    await expect.poll(() => processesMarked(marker).length, { timeout: 10_000 }).toBe(before + 2)
    controller.abort()
    await ended
    await expect.poll(() => processesMarked(marker).length, { timeout: 10_000 }).toBe(before)
    expect((await shell(server, 'echo on')).stdout).toBe('on\n')
    expect(await sandbox.alive(never)).toBe('running')
  })

  test('a container that is killed is a sandbox that is lost', async () => {
    const { server, sandbox } = await start()
    await hydrate(server)
    const hanging = shell(server, 'sleep 1000')
    hanging.catch(() => {})
    await engine.podman('kill', '--signal', 'KILL', `tutti-${sandbox.ref.id}`)
    await expect(hanging).rejects.toMatchObject({ code: 'unavailable', detail: { reason: 'sandbox_lost' } })
    expect(await server.lost).toMatch(/SIGKILL|ended|signal/)
    expect(await sandbox.alive(never)).toBe('gone')
  })

  test('reaches the allowed host through its proxy, and nothing else', async () => {
    const target = createServer((request, response) => response.end(`${request.headers.host}${request.url}`))
    target.listen(0, '127.0.0.1')
    await once(target, 'listening')
    onTestFinished(() => void target.close())
    const { port } = target.address() as AddressInfo
    const egress = await openEgress({
      allowHosts: ['api.example.com'],
      resolve: async () => ['93.184.215.14'],
      dial: () => connect({ host: '127.0.0.1', port }),
      onDenied: () => {},
    })
    onTestFinished(() => egress.close())
    const { server } = await start(egress.folder)
    const fetchOf = (url: string) =>
      shell(
        server,
        `/opt/node/bin/node -e 'fetch("${url}").then((r) => r.text()).then(console.log, () => console.log("failed"))'`,
      )
    expect((await fetchOf('http://api.example.com/path')).stdout).toBe('api.example.com/path\n')
    expect((await fetchOf('https://other.example.com/')).stdout).toBe('failed\n')
    expect((await shell(server, 'rm /run/tutti/egress.sock 2>&1 || echo kept')).stdout).toContain('kept')
  })

  test('what the user inside could not read is said before anything starts', async () => {
    const closed = join(folder, 'closed')
    mkdirSync(closed)
    chmodSync(closed, 0o700)
    const readOnly = [{ host: closed, inside: '/closed' }]
    const spec = { key: 'closed', owner: 'tester', policy: testPolicy, env: {}, readOnly }
    await expect(provider.create(spec, never)).rejects.toMatchObject({
      code: 'failed_precondition',
      detail: { path: closed },
      message: expect.stringContaining('chmod o+rX') as string,
    })
  })
})

async function* parts(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += 1 << 20) yield bytes.subarray(start, start + (1 << 20))
}
