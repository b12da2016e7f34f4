import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AgentServer } from './port.ts'
import { createTestBench, never, shell, type TestBench } from './test-sandbox.ts'

describe.each(['bubblewrap', 'none'] as const)('exec, isolation %s', (isolation) => {
  let bench: TestBench
  let server: AgentServer
  let destroy: () => Promise<void>
  beforeAll(async () => {
    bench = await createTestBench()
    const started = await bench.start({ policy: { isolation }, env: { DECLARED: 'yes' } })
    server = started.server
    destroy = () => bench.provider.destroy(started.sandbox.ref, never)
  })
  afterAll(async () => {
    await destroy()
    await bench.dispose()
  })
  const collect = async (request: Parameters<AgentServer['exec']>[0], signal = never) => {
    const run = server.exec(request, signal)
    let stdout = ''
    for (let next = await run.next(); ; next = await run.next()) {
      if (next.done) return { stdout, ...next.value }
      stdout += Buffer.from(next.value.bytes).toString()
    }
  }

  test('gives input, folder, environment and exit code', async () => {
    await server.writeFile('sub/x', Buffer.from('1'), never)
    const run = await collect({
      argv: ['/bin/sh', '-c', 'pwd; echo "$DECLARED $EXTRA"; cat; exit 7'],
      cwd: 'sub',
      env: { EXTRA: 'more' },
      stdin: Buffer.from('in'),
    })
    expect(run).toEqual({ stdout: `${server.workdir}/sub\nyes more\nin`, code: 7, timedOut: false })
  })

  test('streams output as it comes, of many programs at once', async () => {
    const run = server.exec({ argv: ['/bin/sh', '-c', 'echo first; read line'] }, never)
    expect(Buffer.from(((await run.next()).value as { bytes: Uint8Array }).bytes).toString()).toBe('first\n')
    const others = await Promise.all(
      Array.from({ length: 8 }, (_, index) => shell(server, `sleep 0.05; echo ${index}`)),
    )
    expect(others.map((other) => other.stdout)).toEqual(others.map((_, index) => `${index}\n`))
    while (!(await run.next()).done);
  })

  test('says not_found for a program that is not there', async () => {
    await expect(collect({ argv: ['no-such-program'] })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('ends a program and its group on abort, also one that ignores SIGTERM', async () => {
    const abort = new AbortController()
    const run = server.exec(
      { argv: ['/bin/sh', '-c', 'trap "" TERM; sleep 300 & echo $!; wait; sleep 300'] },
      abort.signal,
    )
    const first = (await run.next()).value as { bytes: Uint8Array }
    const start = performance.now()
    abort.abort()
    await expect(run.next()).rejects.toMatchObject({ code: 'cancelled' })
    expect(performance.now() - start).toBeGreaterThan(1000)
    const pid = Buffer.from(first.bytes).toString().trim()
    expect(
      (await shell(server, `case $(cut -d' ' -f3 /proc/${pid}/stat 2>/dev/null) in ''|Z) echo gone;; esac`))
        .stdout,
    ).toBe('gone\n')
  })

  test('ends a program after its time', async () => {
    const run = await collect({ argv: ['/bin/sh', '-c', 'echo a; sleep 300'], timeoutMs: 100 })
    expect(run).toMatchObject({ stdout: 'a\n', code: null, signal: 'SIGTERM', timedOut: true })
  })

  test('does not wait for what a program leaves in the background, and lets it write on', async () => {
    const run = await shell(server, '(sleep 0.4; echo late; echo wrote > late) & echo now')
    expect(run.stdout).toBe('now\n')
    await expect
      .poll(async () => (await shell(server, 'cat late 2>/dev/null')).stdout, { timeout: 5000 })
      .toBe('wrote\n')
  })

  test('ends everything that was started, detached sessions included, and lives on', async () => {
    await shell(
      server,
      `setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' > /dev/null 2>&1 & sleep 300 > /dev/null 2>&1 &`,
    )
    const line = `cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 30[0]\\|[t]rap'`
    expect(Number((await shell(server, line)).stdout)).toBeGreaterThan(0)
    await server.killProcesses(never)
    const left = isolation === 'bubblewrap' ? (await shell(server, line)).stdout : '0\n'
    expect(left).toBe('0\n')
    expect((await shell(server, 'echo alive')).stdout).toBe('alive\n')
  })

  test('reads and writes files of the workspace only', async () => {
    const bytes = Buffer.from([0, 255, 10, 13])
    await server.writeFile('deep/er/file.bin', bytes, never)
    expect(Buffer.compare(await server.readFile('deep/er/file.bin', 100, never), bytes)).toBe(0)
    expect(await server.readFile('deep/er/file.bin', 2, never)).toHaveLength(2)
    await shell(server, 'ln -s / out; ln -s file.bin deep/er/in; chmod 755 deep/er/file.bin')
    await server.writeFile('deep/er/in', Buffer.from('new'), never)
    expect((await shell(server, 'stat -c %a deep/er/file.bin; cat deep/er/file.bin')).stdout).toBe('755\nnew')
    await expect(server.readFile('missing', 10, never)).rejects.toMatchObject({ code: 'not_found' })
    for (const path of ['../x', '/etc/passwd', 'out/etc/passwd', 'deep/../../x', '']) {
      await expect(server.readFile(path, 10, never)).rejects.toMatchObject({ code: 'invalid_argument' })
      await expect(server.writeFile(path, bytes, never)).rejects.toMatchObject({ code: 'invalid_argument' })
    }
  })

  test('SEC-06: an endless line passes through without growing the worker', async () => {
    const size = 256 << 20
    const run = server.exec({ argv: ['head', '-c', String(size), '/dev/zero'] }, never)
    const before = process.memoryUsage().rss
    let peak = before
    let seen = 0
    for (let next = await run.next(); !next.done; next = await run.next()) {
      seen += next.value.bytes.length
      peak = Math.max(peak, process.memoryUsage.rss())
    }
    expect(seen).toBe(size)
    expect(peak - before).toBeLessThan(96 << 20)
  })

  test('a reader that stops holds its program back, and nobody else', async () => {
    const slow = server.exec(
      { argv: ['/bin/sh', '-c', 'head -c 50000000 /dev/zero; echo done > slow-done'] },
      never,
    )
    await slow.next()
    expect((await shell(server, 'sleep 0.3; ls slow-done 2>/dev/null; echo other')).stdout).toBe('other\n')
    const digest = createHash('sha256')
    for (let next = await slow.next(); !next.done; next = await slow.next()) digest.update(next.value.bytes)
    expect((await shell(server, 'cat slow-done')).stdout).toBe('done\n')
  })
})
