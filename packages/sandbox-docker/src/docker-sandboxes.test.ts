import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processesMarked } from '@tutti/processes'
import { importTestImage, startPodman, type PodmanEngine } from '@tutti/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
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

describe.skipIf(why !== '')(`sandboxes in containers ${why}`, () => {
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

  describe('isolation', () => {
    test('refuses to write outside, shows nothing of the host, and drops every privilege', async () => {
      const { run } = setUp()
      const line = `exec 2>&1
        for path in /x /usr/x /etc/x /opt/x /dev/x /run/x /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do echo y > "$path" && echo "wrote $path"; done
        id -u; id -un; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status; hostname; ls /proc | grep -c '^[0-9]'
        cat /etc/hosts; grep -c : /proc/net/dev
        unshare -Ur true && echo nested; mount -t tmpfs x /tmp && echo mounted; echo end`
      const running = await run(line)
      expect((await running.exit).code).toBe(0)
      const output = running.output()
      expect(output).not.toMatch(/^wrote|^nested|^mounted/m)
      expect(output).toMatch(/^1000\nagent\n/m)
      expect(output).toMatch(/CapEff:\t0{16}\n/)
      expect(output).toMatch(/CapBnd:\t0{16}\n/)
      expect(output).toMatch(/NoNewPrivs:\t1\n/)
      expect(output).toMatch(/Seccomp:\t2\n/)
      // The supervisor, the shell, and what the line itself starts.
      expect(Number(/\nagent\n(\d+)\n/.exec(output.slice(output.indexOf('Seccomp')))![1])).toBeLessThan(7)
      expect(output).toContain('127.0.0.1 localhost agent\n')
      expect(output).toMatch(/localhost\n1\n(.*\n)*end\n$/)
    })

    test('SEC-05: keeps the environment out of what the engine knows, and the host’s out of the sandbox', async () => {
      const canary = `canary-${process.pid}-${Date.now()}`
      vi.stubEnv('TUTTI_TEST_SECRET', `host-${canary}`)
      const running = await setUp().run('env; cat /proc/1/cmdline; sleep 100', { env: { GIVEN: canary } })
      vi.unstubAllEnvs()
      await expect.poll(running.output, within).toContain('tutti-supervisor')
      expect(running.output()).toContain(`GIVEN=${canary}\n`)
      expect(running.output().replaceAll(`GIVEN=${canary}`, '')).not.toContain(canary)
      expect(await engine.podman('inspect', containerOf(running))).not.toContain(canary)
    })

    test('runs one main program; everything else goes through it', async () => {
      const { run } = setUp()
      const first = await run('true')
      await first.exit
      await expect(first.sandbox.exec({ argv: ['true'] }, never)).rejects.toMatchObject({
        code: 'unavailable',
      })
      const second = await run('sleep 100')
      await expect(second.sandbox.exec({ argv: ['true'] }, never)).rejects.toMatchObject({
        code: 'failed_precondition',
      })
    })

    test('says which program there is not, and keeps what a program is told as it is', async () => {
      const subject = setUp()
      const spec = { key: 'missing', owner: 'tester', policy: testPolicy, env: {}, readOnly: [] }
      const sandbox = await subject.provider.create(spec, never)
      await expect(sandbox.exec({ argv: ['no-such-program'] }, never)).rejects.toMatchObject({
        code: 'not_found',
        message: expect.stringContaining('no-such-program') as string,
      })
      const odd = `a 'b' "c" $d \`e\` \\f\n!g; *\n\n`
      const running = await subject.run('printf %s "$ODD"', { env: { ODD: odd } })
      await running.exit
      expect(running.output()).toBe(odd)
    })

    test('mounts what the policy names, read-only at its own path, with its programs on PATH', async () => {
      const subject = setUp()
      const tools = join('/opt', `tutti tools ${process.pid}`)
      mkdirSync(tools, { recursive: true, mode: 0o755 })
      try {
        writeFileSync(join(tools, 'tutti-test-tool'), '#!/bin/sh\necho tool runs\n', { mode: 0o755 })
        vi.stubEnv('PATH', `${process.env['PATH']}:${tools}`)
        const line = 'tutti-test-tool; touch "$0/x" 2>/dev/null || echo read-only'
        const running = await subject.run(line, { policy: { mounts: [tools] } })
        await running.exit
        expect(running.output()).toBe('tool runs\nread-only\n')
      } finally {
        vi.unstubAllEnvs()
        rmSync(tools, { recursive: true, force: true })
      }
    })

    test('has no network by default, and the engine’s when it is allowed', async () => {
      const server = createServer((_, response) => response.end('reached'))
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      onTestFinished(() => void server.close())
      const { port } = server.address() as AddressInfo
      const { run } = setUp({ network: 'host' })
      const line = `/opt/node/bin/node -e 'fetch("http://127.0.0.1:${port}").then((r) => r.text()).then(console.log, () => console.log("closed"))'`
      const closed = await run(line)
      await closed.exit
      expect(closed.output()).toBe('closed\n')
      const open = await run(line, { policy: { allowNetwork: true } })
      await open.exit
      expect(open.output()).toBe('reached\n')
    })

    test('refuses to mount what no agent may see, also behind a link', async () => {
      const subject = setUp({ dataDir: '/srv/tutti' })
      const link = join(subject.folder, 'link')
      symlinkSync('/etc/shadow', link)
      for (const path of ['/', '/proc', '/etc', '/srv', subject.folder, link]) {
        await expect(subject.run('true', { policy: { mounts: [path] } }), path).rejects.toMatchObject({
          code: 'invalid_argument',
          detail: { field: 'sandbox.mounts', path },
        })
      }
    })
  })

  describe('streams', () => {
    test('carry what is binary and large, both ways at once, no faster than it is read', async () => {
      const subject = setUp()
      const spec = { key: 'binary', owner: 'tester', policy: testPolicy, env: {}, readOnly: [] }
      const sandbox = await subject.provider.create(spec, never)
      const exec = await sandbox.exec({ argv: ['cat'] }, never)
      const size = 24 << 20
      const piece = Buffer.alloc(64 << 10, Buffer.from(Array.from({ length: 256 }, (_, index) => index)))
      let sent = 0
      const sending = (async () => {
        for (; sent < size; sent += piece.length) await exec.write(piece)
        await exec.closeStdin()
      })()
      // Nobody reads yet, so that not much more can be sent than all the buffers on the way hold.
      let last = -1
      await expect
        .poll(() => [last, (last = sent)], { timeout: 15_000, interval: 300 })
        .toSatisfy(([before, now]: [number, number]) => before === now && now > 0)
      expect(sent).toBeLessThan(8 << 20)
      const hash = createHash('sha256')
      let received = 0
      for await (const chunk of exec.stdout) {
        received += chunk.length
        hash.update(chunk)
      }
      await sending
      expect(received).toBe(size)
      const expected = createHash('sha256')
      for (let index = 0; index < size; index += piece.length) expected.update(piece)
      expect(hash.digest('hex')).toBe(expected.digest('hex'))
      expect((await exec.exit).code).toBe(0)
    })

    test('of a program that talks on both at once stay apart', async () => {
      const running = setUp()
      const spec = { key: 'both', owner: 'tester', policy: testPolicy, env: {}, readOnly: [] }
      const sandbox = await running.provider.create(spec, never)
      const line = 'seq 1 20000 & seq 20001 40000 >&2 & wait'
      const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', line] }, never)
      const read = async (stream: AsyncIterable<Uint8Array>) =>
        Buffer.concat(await Array.fromAsync(stream)).toString()
      const [stdout, stderr] = await Promise.all([read(exec.stdout), read(exec.stderr)])
      const numbers = (from: number) =>
        Array.from({ length: 20_000 }, (_, index) => `${from + index}\n`).join('')
      expect(stdout === numbers(1)).toBe(true)
      expect(stderr === numbers(20_001)).toBe(true)
    })
  })

  describe('limits', () => {
    test('SEC-07: stops a fork bomb and a memory bomb, says which, and leaves nothing', async () => {
      const subject = setUp()
      const forks = await subject.run('f() { f | f & sleep 60; }; f; wait', { limits: { pids: 32 } })
      await expect.poll(() => forks.sandbox.limitHit(), within).toBe('pids')
      await subject.provider.destroy(forks.sandbox.ref, never)
      expect((await forks.exit).limit).toBe('pids')

      const bomb = `/opt/node/bin/node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(4 << 20, 1))'`
      const memory = await subject.run(bomb, { limits: { memoryBytes: 192 << 20 } })
      expect(await memory.exit).toMatchObject({ code: null, signal: 'SIGKILL', limit: 'memory' })
      await subject.provider.destroy(memory.sandbox.ref, never)
      for (const { sandbox } of [forks, memory])
        expect(processesMarked(`TUTTI_SANDBOX_ID=${sandbox.ref.id}`)).toEqual([])
    })

    test.each(['mount', 'watchdog'] as const)(
      'stops at bytes, files and the size of one file, by %s',
      async (disk) => {
        const subject = setUp({ disk })
        const limits = { diskBytes: 24 << 20, files: 500, fileBytes: 4 << 20 }
        const stay = disk === 'mount' ? '' : '; sleep 60'
        const fill = `i=0; while [ $i -lt 20 ]; do head -c 2500000 /dev/urandom > f$i || break; i=$((i+1)); done${stay}`
        const bytes = await subject.run(fill, { limits })
        await bytes.exit
        expect(bytes.sandbox.limitHit()).toBe('disk')
        const many = `i=0; while [ $i -lt 800 ]; do true > f$i || break; i=$((i+1)); done${stay}`
        const files = await subject.run(many, { limits })
        await files.exit
        expect(files.sandbox.limitHit()).toBe('files')
        const large = await subject.run('head -c 6000000 /dev/zero > big; stat -c %s big', { limits })
        await large.exit
        expect(large.output()).toContain(`${limits.fileBytes}\n`)
      },
    )

    test('SEC-07: busy loops get the cpu that is allowed, not more', async () => {
      const loops = await setUp().run('for i in 1 2 3 4; do while :; do :; done & done; wait', {
        limits: { cpuPercent: 20 },
      })
      const wallStart = performance.now()
      const cpuOf = () =>
        processesMarked(`TUTTI_SANDBOX_ID=${loops.sandbox.ref.id}`).reduce((sum, pid) => {
          const text = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : ''
          const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
          return sum + Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
        }, 0)
      await expect.poll(cpuOf, within).toBeGreaterThan(20)
      // Ticks of 10 ms; a quota's first period may run ahead by one period of each core, and the start was before the clock's.
      expect(cpuOf() * 10).toBeLessThan((performance.now() - wallStart) * 0.2 + 500)
    })
  })
})
