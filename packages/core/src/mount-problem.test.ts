import { expect, test } from 'vitest'
import { mountProblem } from './mount-problem.ts'

const own = ['/home/me/.local/share/tutti']

test.for([
  '/opt/tools',
  '/home/me/.local/bin',
  '/usr',
  '/etc/ssl/certs',
  '/tmp/tools',
  '/processes',
  '/home/agent/bin',
])('%s may be mounted', (path) => expect(mountProblem(path, own)).toBeUndefined())

test.for([
  ['relative', /absolute/],
  ['', /absolute/],
  ['/opt/../etc/shadow', /\.\. part/],
  ['/', /whole disk/],
  ['//', /whole disk/],
  ['/proc', /processes/],
  ['/proc/1/root', /processes/],
  ['/dev/', /devices/],
  ['/run/docker.sock', /sockets/],
  ['/etc/shadow', /credentials/],
  ['/etc', /contains \/etc\/shadow/],
  ['//etc//ssh/', /credentials/],
  ['/workspace/lib', /one of its own/],
  ['/tmp', /one of its own/],
  ['/home/me/.local/share/tutti', /Tutti's data/],
  ['/home/me/.local/share/tutti/local-key', /Tutti's data/],
  ['/home/me', /contains \/home\/me\/\.local\/share\/tutti/],
] as const)('%s may not', ([path, why]) => expect(mountProblem(path, own)).toMatch(why))
