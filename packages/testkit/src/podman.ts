import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { processesMarked } from '@tutti/processes'

const run = promisify(execFile)

/** A real container engine for one test file: Podman as root, with storage, settings and socket of its own. */
export interface PodmanEngine {
  /** Serves Docker's API. */
  readonly socketPath: string
  readonly folder: string
  /** Runs the command line against the same storage. @returns what it printed. */
  podman(...args: string[]): Promise<string>
  /** Makes an image from an archive that the shell line writes to its output. `changes` are lines of a Dockerfile. */
  importImage(name: string, tarLine: string, changes?: readonly string[]): Promise<void>
  /** Kills the service, as a crash would; containers go on. */
  stop(): Promise<void>
  /** Starts it again after {@link stop}. */
  start(): Promise<void>
  /** Ends everything: service, containers, mounts, folder. */
  dispose(): Promise<void>
}

/**
 * Runs the service, and when its input ends, which is also when the test is killed, removes all that there is. Lines of input are
 * `start` and `stop`; each is answered by a line.
 */
const guardScript = `
cd "$1" || exit
service=
start() { podman system service --time 0 "unix://$1/podman.sock" </dev/null >>service.log 2>&1 & service=$!; }
stop() { [ -z "$service" ] || { kill -9 "$service"; wait "$service"; service=; rm -f "$1/podman.sock"; }; } 2>/dev/null
while read -r word; do
  case $word in start) start "$1" ;; stop) stop "$1" ;; esac
  echo "$word"
done
stop "$1"
podman rm --all --force --time 0 >>service.log 2>&1
grep -F " $1/" /proc/self/mountinfo | cut -d ' ' -f 5 | sort -r | while read -r mount; do umount -l "$mount"; done
cd /
rm -rf "$1"
`

/** What a nested machine, without all capabilities, can do; nothing is shared with an engine of the machine's own. */
const settings = (folder: string): string => `
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
tmp_dir = "${folder}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "${folder}/networks"
`
const storage = (folder: string): string => `
[storage]
driver = "overlay"
graphroot = "${folder}/images"
runroot = "${folder}/run"
`

const pollMs = 20
const endLimitMs = 10_000

/** Starts an engine. Without images; see {@link PodmanEngine.importImage}. */
export async function startPodman(): Promise<PodmanEngine> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-podman-'))
  const socketPath = join(folder, 'podman.sock')
  const conf = join(folder, 'containers.conf')
  await writeFile(conf, settings(folder))
  await writeFile(join(folder, 'storage.conf'), storage(folder))
  const env = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    CONTAINERS_CONF: conf,
    CONTAINERS_STORAGE_CONF: join(folder, 'storage.conf'),
    TMPDIR: folder,
  }
  const guard = spawn('/bin/sh', ['-c', guardScript, 'tutti-podman', folder], {
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const answers = createInterface({ input: guard.stdout })
  const tell = async (word: 'start' | 'stop') => {
    const answer = once(answers, 'line')
    guard.stdin.write(`${word}\n`)
    await answer
  }
  const start = async () => {
    await tell('start')
    while (!(await answersPing(socketPath))) await sleep(pollMs)
  }
  const engine: PodmanEngine = {
    socketPath,
    folder,
    start,
    async podman(...args) {
      // Elsewhere than here: programs of the engine leave files in the folder they are started in.
      return (await run('podman', args, { env, cwd: folder })).stdout.trim()
    },
    async importImage(name, tarLine, changes = []) {
      const line = `{ ${tarLine}; } | podman import --quiet "$@"`
      const options = changes.flatMap((change) => ['--change', change])
      await run('/bin/sh', ['-c', line, 'tutti-import', ...options, '-', name], { env, cwd: folder })
    },
    stop: () => tell('stop'),
    async dispose() {
      guard.stdin.end()
      await ended(guard)
      const limit = performance.now() + endLimitMs
      // Those that looked after a container end a moment later.
      for (let left = marked(conf); left.length > 0; left = marked(conf)) {
        if (performance.now() > limit) throw new Error(`Podman left processes: ${left.join(', ')}`)
        await sleep(pollMs)
      }
    },
  }
  try {
    await start()
  } catch (error) {
    await engine.dispose()
    throw error
  }
  return engine
}

const marked = (conf: string): number[] => processesMarked(`CONTAINERS_CONF=${conf}`)

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

function answersPing(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request({ socketPath, path: '/_ping', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    call.once('error', () => resolve(false)).end()
  })
}
