import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { processesMarked, processStat } from '@tutti/processes'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { describeLocalSandbox } from './describe-local-sandbox.ts'
import type { LocalSandboxesOptions } from './local-sandboxes.ts'
import { createTestSubject, never, type TestSubject } from './test-subject.ts'

const subjects: TestSubject[] = []
const setUp = (options?: Partial<LocalSandboxesOptions>): TestSubject => {
  const subject = createTestSubject(options)
  subjects.push(subject)
  return subject
}
afterEach(async () => {
  for (const subject of subjects.splice(0)) await subject.dispose()
})

const within = { timeout: 10_000, interval: 20 }
const mountsBelow = (folder: string) =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .replaceAll('\\040', ' ')
    .split('\n')
    .filter((line) => line.includes(folder))
const livingMarked = (id: string) => processesMarked(`TUTTI_SANDBOX_ID=${id}`)

describe('isolation by bubblewrap', () => {
  test('refuses to write outside, shows no host files or processes, and drops every privilege', async () => {
    const { run } = setUp()
    const line = `exec 2>&1
      for path in /x /usr/x /etc/x /opt/x /dev/x /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/self/oom_score_adj; do echo y > "$path" && echo "wrote $path"; done
      ls -d /root /home/* /etc/shadow /etc/ssh /sys /run /var/run /srv /mnt 2>/dev/null
      cat /etc/shadow; id -u; grep CapEff /proc/self/status; hostname; ls /proc | grep -c '^[0-9]'
      unshare -Ur true && echo nested; mount -t tmpfs x /tmp && echo mounted; echo end`
    const running = await run(line)
    expect((await running.exit).code).toBe(0)
    const output = running.output()
    expect(output).not.toMatch(/^wrote|^nested|^mounted/m)
    expect(output).toContain('\n/home/agent\n')
    expect(output).not.toMatch(/^\/(root|sys|run|srv|mnt|etc)/m)
    expect(output).toContain('\n1000\nCapEff:\t0000000000000000\nagent\n')
    // bwrap, the shell, and what the line itself starts.
    expect(Number(/agent\n(\d+)\n/.exec(output)![1])).toBeLessThan(6)
  })

  test('SEC-05: keeps the environment, arguments and files of the host out of reach', async () => {
    const canary = `canary-${process.pid}-${Date.now()}`
    process.env['TUTTI_TEST_SECRET'] = canary
    const subject = setUp()
    writeFileSync(join(subject.folder, 'secret'), canary)
    const line = `env; cat /proc/*/environ /proc/*/cmdline /proc/*/mountinfo; grep -ral '${canary.slice(0, 7)}[-]' /home /tmp /etc /opt /workspace /var; echo end`
    const running = await subject.run(line).finally(() => delete process.env['TUTTI_TEST_SECRET'])
    await running.exit
    expect(running.output()).toContain('end\n')
    expect(running.output()).not.toContain(canary)
    expect(running.output()).not.toContain('TUTTI_TEST_SECRET')
  })

  test('has no network by default, and the host’s when it is allowed', async () => {
    const server = createHttpServer((_, response) => response.end('reached'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { run } = setUp()
    const line = `/opt/node/bin/node -e 'fetch("http://127.0.0.1:${port}").then((r) => r.text()).then(console.log, () => console.log("closed"))'; grep -c : /proc/net/dev`
    const closed = await run(line)
    await closed.exit
    expect(closed.output()).toBe('closed\n1\n')
    const open = await run(line, { policy: { allowNetwork: true } })
    await open.exit
    expect(open.output()).toMatch(/^reached\n/)
    server.close()
  })

  test('never runs without the isolation that was asked for, and says what to install', async () => {
    const { run, provider } = setUp({ bubblewrapPath: '/nonexistent/bwrap' })
    await expect(run('true')).rejects.toMatchObject({
      code: 'failed_precondition',
      message: expect.stringMatching(/bubblewrap.*(apt-get install bubblewrap|package)/s),
    })
    expect(await provider.list(undefined, never)).toEqual([])
    const broken = setUp({ bubblewrapPath: '/bin/false' })
    await expect(broken.run('true')).rejects.toMatchObject({ code: 'failed_precondition' })
    const allowed = await run('echo plain', { policy: { isolation: 'none' } })
    await allowed.exit
    expect(allowed.output()).toBe('plain\n')
  })

  // A bwrap that is killed early leaves a child that nobody told to die with it: one that lives on, or one that waits for it for good.
  test.each([
    ['which then starts', 'sleep 0.2; exec bwrap "$@"'],
    ['which is not known by its pid', 'exec 4>&-; exec sleep 1000'],
  ])('SBX-06: a bwrap that dies early takes its child along, %s', async (_, child) => {
    const early = `case "$*" in *--info-fd*) (${child}) & kill -9 $$;; esac; exec bwrap "$@"`
    const { folder } = setUp()
    const bubblewrapPath = join(folder, 'early-bwrap')
    writeFileSync(bubblewrapPath, `#!/bin/sh\n${early}\n`, { mode: 0o755 })
    const { sandbox, exit } = await setUp({ bubblewrapPath, limiter: 'watchdog' }).run('sleep 1000')
    // With the last end of its output.
    await expect(exit).resolves.toMatchObject({ signal: 'SIGKILL' })
    expect(await sandbox.alive(never)).toBe('gone')
    await expect.poll(() => livingMarked(sandbox.ref.id), within).toEqual([])
  })

  test('runs one main program; everything else goes through it', async () => {
    const { run } = setUp()
    const { sandbox, exit } = await run('true')
    await exit
    await expect(sandbox.exec({ argv: ['true'] }, never)).rejects.toMatchObject({ code: 'unavailable' })
    const second = await run('sleep 100')
    await expect(second.sandbox.exec({ argv: ['true'] }, never)).rejects.toMatchObject({
      code: 'failed_precondition',
    })
  })

  test('mounts what the policy names, read-only at its own path, with its programs on PATH', async () => {
    const subject = setUp()
    const tools = join(subject.folder, 'tools')
    mkdirSync(tools)
    writeFileSync(join(tools, 'tutti-test-tool'), '#!/bin/sh\necho tool runs\n', { mode: 0o755 })
    vi.stubEnv('PATH', `${process.env['PATH']}:${tools}`)
    const running = await subject.run('tutti-test-tool; touch "$0/x" 2>/dev/null || echo read-only', {
      policy: { mounts: [tools] },
    })
    await running.exit
    vi.unstubAllEnvs()
    expect(running.output()).toBe('tool runs\nread-only\n')
  })

  test('refuses to mount what no agent may see, also behind a link', async () => {
    const subject = setUp({ dataDir: '/srv/tutti' })
    const link = join(subject.folder, 'link')
    const refuse = async (path: string) => {
      const running = subject.run('true', { policy: { mounts: [path] } })
      await expect(running, path).rejects.toMatchObject({
        code: 'invalid_argument',
        detail: { field: 'sandbox.mounts', path },
        message: expect.stringContaining('mount'),
      })
    }
    for (const target of ['/', '/proc', '/etc', '/proc/self/root/usr', '/srv', subject.folder])
      await refuse(target)
    symlinkSync('/etc/shadow', link)
    await refuse(link)
  })
})

const kinds: readonly [string, Partial<LocalSandboxesOptions>][] = [
  ['kernel limits', {}],
  ['watchdog', { limiter: 'watchdog', disk: 'watchdog' }],
]

describe.each(kinds)('limits by %s', (name, options) => {
  const kernel = name === 'kernel limits'

  test('SEC-07: stops a fork bomb and a memory bomb, says which, and leaves nothing', async () => {
    const subject = setUp(options)
    // Without a kernel limit a real bomb would be the whole host's; the watchdog gets one that it can beat.
    const bombLine = kernel
      ? 'f() { f | f & sleep 60; }; f; wait'
      : 'i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; wait'
    const forks = await subject.run(bombLine, { limits: { pids: 32 } })
    await expect.poll(() => forks.sandbox.limitHit(), within).toBe('pids')
    await subject.provider.destroy(forks.sandbox.ref, never)
    expect((await forks.exit).limit).toBe('pids')

    const bomb = `/opt/node/bin/node -e 'const kept = []; for (;;) kept.push(Buffer.alloc(4 << 20, 1))'`
    const memory = await subject.run(bomb, { limits: { memoryBytes: 192 << 20 } })
    expect(await memory.exit).toMatchObject({ limit: 'memory' })
    await subject.provider.destroy(memory.sandbox.ref, never)
    for (const { sandbox } of [forks, memory]) expect(livingMarked(sandbox.ref.id)).toEqual([])
  })

  test('stops at the bytes and the files that the folders may hold, and at the size of one file', async () => {
    const subject = setUp(options)
    const limits = { diskBytes: 24 << 20, files: 500, fileBytes: 4 << 20 }
    const fill = `i=0; while [ $i -lt 20 ]; do head -c 2500000 /dev/urandom > f$i || break; i=$((i+1)); done; echo full`
    const bytes = await subject.run(kernel ? fill : `${fill}; sleep 60`, { limits })
    const bytesExit = await bytes.exit
    expect(bytes.sandbox.limitHit()).toBe('disk')
    expect(bytesExit.code === 0).toBe(kernel)

    const many = `i=0; while [ $i -lt 800 ]; do true > f$i || break; i=$((i+1)); done; echo "$i"`
    const files = await subject.run(kernel ? many : `${many}; sleep 60`, { limits })
    await files.exit
    expect(files.sandbox.limitHit()).toBe('files')
    const left = readdirSync(
      join(subject.folder, 'sandboxes', files.sandbox.ref.id, 'data', 'workspace'),
    ).length
    expect(left).toBeGreaterThan(450)
    // The watchdog comes when it is too late, but it comes.
    expect(left).toBeLessThan(kernel ? 520 : 801)

    const large = await subject.run('head -c 6000000 /dev/zero > big; stat -c %s big', { limits })
    await large.exit
    expect(large.output()).toContain(`${limits.fileBytes}\n`)
  })
})

test('SEC-07: busy loops get the cpu that is allowed, not more', async () => {
  const subject = setUp()
  const loops = await subject.run('for i in 1 2 3 4; do while :; do :; done & done; wait', {
    limits: { cpuPercent: 20 },
  })
  const wallStart = performance.now()
  const cpuOf = () =>
    livingMarked(loops.sandbox.ref.id).reduce((sum, pid) => {
      const text = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'latin1') : ''
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return sum + Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
    }, 0)
  await expect.poll(cpuOf, within).toBeGreaterThan(20)
  // Ticks of 10 ms; a quota's first period may run ahead by one period of each core.
  expect(cpuOf() * 10).toBeLessThan((performance.now() - wallStart) * 0.2 + 400)
})

describe.each(['bubblewrap', 'none'] as const)('the end of a sandbox, isolation %s', (isolation) => {
  const stubborn = `
    setsid sh -c 'trap "" TERM HUP INT; echo detached; while :; do sleep 0.05; done' &
    (trap "" TERM; while :; do sleep 0.05; done) &
    "$NODE" -e 'require("http").createServer().listen(0, () => console.log("serving"))' &
    wait`
  const line = (node: string) => `NODE="${node}"; ${stubborn}`

  test.each(kinds)('SBX-06: nothing that was started is left within 5 s (%s)', async (_, options) => {
    const subject = setUp(options)
    const node = isolation === 'none' ? process.execPath : '/opt/node/bin/node'
    const { sandbox, output } = await subject.run(line(node), { policy: { isolation } })
    await expect.poll(output, within).toMatch(/(detached[^]*serving|serving[^]*detached)/)
    expect(livingMarked(sandbox.ref.id).length).toBeGreaterThan(3)
    const start = performance.now()
    await subject.provider.destroy(sandbox.ref, never)
    expect(performance.now() - start).toBeLessThan(5000)
    expect(livingMarked(sandbox.ref.id)).toEqual([])
    expect(mountsBelow(subject.folder)).toEqual([])
    expect(readdirSync(join(subject.folder, 'sandboxes'))).toEqual([])
    expect(groupsOf(sandbox.ref.id)).toEqual([])
  })

  test('SBX-06: a killed maker leaves nothing that the next one does not end', async () => {
    const subject = setUp()
    const node = isolation === 'none' ? process.execPath : '/opt/node/bin/node'
    const maker = spawn(
      process.execPath,
      ['--input-type=module', '-e', makerScript, subject.folder, isolation, line(node)],
      { cwd: import.meta.dirname, stdio: ['ignore', 'pipe', 'inherit'] },
    )
    let said = ''
    maker.stdout.on('data', (chunk: Buffer) => (said += chunk))
    await expect.poll(() => said, within).toMatch(/detached[^]*serving|serving[^]*detached/)
    const [ref] = await subject.provider.list(undefined, never)
    expect(await subject.provider.reap(never)).toEqual([])
    maker.kill('SIGKILL')
    await once(maker, 'exit')
    // Without isolation nothing ends them before the reaper does.
    const unreaped = () => (isolation === 'bubblewrap' ? livingMarked(ref!.id) : [])
    await expect.poll(unreaped, within).toEqual([])
    await expect.poll(() => mountsBelow(subject.folder), within).toEqual([])
    expect(await subject.provider.reap(never)).toEqual([ref])
    expect(livingMarked(ref!.id)).toEqual([])
    expect(mountsBelow(subject.folder)).toEqual([])
    expect(readdirSync(join(subject.folder, 'sandboxes'))).toEqual([])
    expect(groupsOf(ref!.id)).toEqual([])
  })
})

test('SBX-06: fifty rounds leave descriptors, processes, mounts and folders as they were', async () => {
  const subject = setUp()
  const round = async () => {
    const { sandbox, output } = await subject.run('mkdir -p a/b; chmod 0 a; echo up; sleep 100')
    await expect.poll(output, { ...within, interval: 5 }).toBe('up\n')
    await subject.provider.destroy(sandbox.ref, never)
  }
  await round()
  const count = () => ({
    descriptors: readdirSync('/proc/self/fd').length,
    children: readdirSync('/proc').filter((name) => processStat(Number(name))?.parent === process.pid).length,
    mounts: mountsBelow(subject.folder).length,
    folders: readdirSync(join(subject.folder, 'sandboxes')).length,
  })
  const before = count()
  for (let index = 0; index < 50; index += 1) await round()
  await expect.poll(count, within).toEqual(before)
}, 60_000)

test('keeps sandboxes of one key under two roots apart', async () => {
  const [left, right] = [setUp(), setUp()]
  const [first, second] = await Promise.all([
    left.run('sleep 100'),
    right.run('echo up; sleep 0.5; echo done'),
  ])
  expect(first.sandbox.ref.key).toBe(second.sandbox.ref.key)
  await expect.poll(second.output, within).toBe('up\n')
  await left.provider.destroy(first.sandbox.ref, never)
  await second.exit
  expect(second.output()).toBe('up\ndone\n')
})

test('describes what works here', async () => {
  const subject = setUp()
  const description = await describeLocalSandbox({ root: join(subject.folder, 'probe') })
  expect(description).toMatchObject({ bubblewrap: { works: true } })
  expect(readdirSync(join(subject.folder, 'probe'))).toEqual([])
  const without = await describeLocalSandbox({
    root: join(subject.folder, 'probe'),
    bubblewrapPath: '/no/bwrap',
  })
  expect(without.bubblewrap).toMatchObject({ works: false, remedy: expect.stringContaining('install') })
})

const makerScript = `
  import { createTestSubject } from './test-subject.ts'
  import { createLocalSandboxes } from './local-sandboxes.ts'
  import { testLimits } from './test-subject.ts'
  const [folder, isolation, line] = process.argv.slice(1)
  const provider = createLocalSandboxes({ root: folder + '/sandboxes', nodePath: process.execPath })
  const policy = { isolation, allowHosts: [], allowNetwork: false, envNames: [], envValues: {}, mounts: [], limits: testLimits }
  const never = new AbortController().signal
  const sandbox = await provider.create({ key: 'made', owner: 'maker', policy, env: {}, readOnly: [] }, never)
  const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', line] }, never)
  for await (const chunk of exec.stdout) process.stdout.write(chunk)
`

function groupsOf(id: string): string[] {
  const own = readFileSync('/proc/self/cgroup', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter((parts) => parts.length >= 3)
  return own
    .flatMap(([, names, path]) => [
      `/sys/fs/cgroup/${names}${path}/tutti-${id}`,
      `/sys/fs/cgroup${path}/tutti-${id}`,
    ])
    .filter((folder) => existsSync(folder))
}
