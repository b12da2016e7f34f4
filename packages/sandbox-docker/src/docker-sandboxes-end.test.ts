import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { processesMarked, processStat } from '@tutti/processes'
import { importTestImage, startPodman, type PodmanEngine } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { DockerSandboxesOptions } from './docker-sandboxes.ts'
import { testPolicy } from './test-policy.ts'
import { createTestSubject, never, type TestSubject } from './test-subject.ts'

declare module 'vitest' {
  interface ProvidedContext {
    engineMissing: string
  }
}

const why = inject('engineMissing')
const within = { timeout: 15_000, interval: 20 }

describe.skipIf(why !== '')(`the end of sandboxes in containers ${why}`, () => {
  let engine: PodmanEngine
  let image: string
  const subjects: TestSubject[] = []
  let shared: TestSubject | undefined
  /** With options one of its own; without the one of all tests, whose image was checked before. */
  const setUp = (options?: Partial<DockerSandboxesOptions>): TestSubject => {
    if (!options) return (shared ??= createTestSubject({ image, socketPath: engine.socketPath }))
    const subject = createTestSubject({ image, socketPath: engine.socketPath, ...options })
    subjects.push(subject)
    return subject
  }
  const containerOf = (subject: { sandbox: { ref: { id: string } } }) => `tutti-${subject.sandbox.ref.id}`
  const containers = async () =>
    (await engine.podman('ps', '--all', '--quiet')).split('\n').filter((line) => line !== '')

  beforeAll(async () => {
    engine = await startPodman()
    image = await importTestImage(engine, 'complete')
  })
  afterEach(async () => {
    for (const subject of subjects.splice(0)) await subject.dispose()
    await shared?.clear()
    expect(await containers()).toEqual([])
  })
  afterAll(async () => {
    await shared?.dispose()
    await engine?.dispose()
  })

  const stubborn = `
      setsid sh -c 'trap "" TERM HUP INT; echo detached; while :; do sleep 0.05; done' &
      (trap "" TERM; while :; do sleep 0.05; done) &
      /opt/node/bin/node -e 'require("http").createServer().listen(0, () => console.log("serving"))' &
      wait`

  test('SBX-06: nothing that was started is left within 5 s', async () => {
    const subject = setUp()
    const { sandbox, output } = await subject.run(stubborn)
    await expect.poll(output, within).toMatch(/(detached[^]*serving|serving[^]*detached)/)
    const marker = `TUTTI_SANDBOX_ID=${sandbox.ref.id}`
    expect(processesMarked(marker).length).toBeGreaterThan(3)
    const start = performance.now()
    await subject.provider.destroy(sandbox.ref, never)
    expect(performance.now() - start).toBeLessThan(5000)
    expect(processesMarked(marker)).toEqual([])
    expect(await containers()).toEqual([])
    expect(subject.folders()).toEqual([])
  })

  test('gives programs the time to end that SIGTERM asks for', async () => {
    const subject = setUp({ stopGraceMs: 10_000 })
    const running = await subject.run(`trap 'echo asked; exit 4' TERM; echo up; while :; do sleep 0.02; done`)
    await expect.poll(running.output, within).toBe('up\n')
    await running.exec.kill('SIGTERM')
    expect(await running.exit).toMatchObject({ code: 4 })
    expect(running.output()).toContain('asked\n')
    expect(await running.sandbox.alive(never)).toBe('gone')
  })

  test('reaps what its programs leave behind', async () => {
    const { run } = setUp()
    const line = `for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; sleep 1000 & echo up; while :; do sleep 0.1; ps -e -o stat= | grep -c Z; done`
    const { output } = await run(line)
    await expect.poll(output, within).toMatch(/up\n(\d+\n)*0\n/)
  })

  test('a container killed from outside is gone, and its program has no exit code', async () => {
    const subject = setUp()
    const running = await subject.run('echo up; sleep 100')
    await expect.poll(running.output, within).toBe('up\n')
    await engine.podman('kill', '--signal', 'KILL', containerOf(running))
    expect((await running.exit).code).toBeNull()
    expect(await running.sandbox.alive(never)).toBe('gone')
    expect(await subject.provider.attach(running.sandbox.ref, never)).toBeNull()
    // The container itself is still to be removed, and found.
    expect(await subject.provider.list(undefined, never)).toEqual([running.sandbox.ref])
    const removed = await subject.run('echo up; sleep 100')
    await engine.podman('rm', '--force', '--time', '0', containerOf(removed))
    expect((await removed.exit).code).toBeNull()
    expect(await removed.sandbox.alive(never)).toBe('gone')
  })

  test('an engine that stopped is not a sandbox that is gone', async () => {
    const subject = setUp()
    const running = await subject.run('echo up; sleep 100')
    await expect.poll(running.output, within).toBe('up\n')
    await engine.stop()
    try {
      expect((await running.exit).code).toBeNull()
      expect(await running.sandbox.alive(never)).toBe('unknown')
      const calls = [
        () => subject.run('true'),
        () => subject.provider.list(undefined, never),
        () => subject.provider.attach(running.sandbox.ref, never),
        () => subject.provider.destroy(running.sandbox.ref, never),
        () => setUp({ stopGraceMs: 100 }).run('true'),
      ]
      for (const call of calls) {
        await expect(call()).rejects.toMatchObject({
          code: 'unavailable',
          message: expect.stringMatching(/engine/) as string,
        })
      }
    } finally {
      await engine.start()
    }
    await subject.provider.destroy(running.sandbox.ref, never)
    expect(await subject.provider.list(undefined, never)).toEqual([])
    const again = await subject.run('echo again')
    await again.exit
    expect(again.output()).toBe('again\n')
  })

  test('SBX-06: a killed maker leaves a container that ends by itself, is found by others, and is reaped', async () => {
    const subject = setUp()
    const maker = spawn(
      process.execPath,
      ['--input-type=module', '-e', makerScript, join(subject.folder, 'sandboxes'), engine.socketPath, image],
      { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    let said = ''
    maker.stdout.on('data', (chunk: Buffer) => (said += chunk))
    await expect.poll(() => said, within).toBe('up\n')
    const [ref] = await subject.provider.list('maker', never)
    expect(ref).toMatchObject({ provider: 'docker', key: 'made' })
    expect(await subject.provider.reap(never)).toEqual([])
    const spec = { key: 'made', owner: 'maker', policy: testPolicy, env: {}, readOnly: [] }
    await expect(subject.provider.create(spec, never)).rejects.toMatchObject({
      code: 'failed_precondition',
    })
    maker.kill('SIGKILL')
    await once(maker, 'exit')
    await expect.poll(() => processesMarked(`TUTTI_SANDBOX_ID=${ref!.id}`), within).toEqual([])
    expect(await subject.provider.list('maker', never)).toEqual([ref])
    expect(await subject.provider.reap(never)).toEqual([ref])
    expect(await containers()).toEqual([])
    expect(subject.folders()).toEqual([])
    const made = await subject.provider.create(spec, never)
    expect(await made.alive(never)).toBe('running')
  })

  test('SBX-06: ends everything at once without giving anybody a turn', async () => {
    const subject = setUp()
    const running = await subject.run('trap "" TERM; echo up; while :; do sleep 0.05; done')
    await expect.poll(running.output, within).toBe('up\n')
    subject.provider.kill()
    expect(subject.folders()).toEqual([])
    await expect.poll(containers, within).toEqual([])
    expect((await running.exit).code).toBeNull()
  })

  test('SBX-06: ten rounds leave descriptors, containers, mounts and folders as they were', async () => {
    const subject = setUp({ stopGraceMs: 0 })
    const round = async () => {
      const { sandbox, output } = await subject.run('mkdir -p a/b; chmod 0 a; echo up; sleep 100')
      await expect.poll(output, { ...within, interval: 5 }).toBe('up\n')
      await subject.provider.destroy(sandbox.ref, never)
    }
    await round()
    const count = () => ({
      descriptors: readdirSync('/proc/self/fd').length,
      children: readdirSync('/proc').filter((name) => processStat(Number(name))?.parent === process.pid)
        .length,
      mounts: readFileSync('/proc/self/mountinfo', 'utf8').split('\n').length,
      folders: subject.folders().length,
    })
    const before = count()
    for (let index = 0; index < 10; index += 1) await round()
    await expect.poll(() => ({ ...count(), mounts: before.mounts }), within).toEqual(before)
  }, 60_000)
})

const makerScript = `
  import { createDockerSandboxes } from './docker-sandboxes.ts'
  import { testPolicy as policy } from './test-policy.ts'
  const [root, socketPath, image] = process.argv.slice(1)
  const provider = createDockerSandboxes({ root, socketPath, image, nodePath: process.execPath })
  const never = new AbortController().signal
  const sandbox = await provider.create({ key: 'made', owner: 'maker', policy, env: {}, readOnly: [] }, never)
  // It ends with its input, as the agent server does.
  const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', 'echo up; cat'] }, never)
  for await (const chunk of exec.stdout) process.stdout.write(chunk)
`
