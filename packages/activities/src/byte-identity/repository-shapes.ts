const nested = 'git init -q -b main . && echo n > file && git add file && git commit -qm nested'
const fixedConflict = 'git add -A --ignore-errors .; git commit -qm done'

/** For tests: repositories in the workspace, as {@link treeShapes}. */
export const nestedShapes: Readonly<Record<string, string>> = {
  'a repository in the workspace': `mkdir -p nested; cd nested; ${nested}; echo dirty >> file; echo u > untracked`,
  'a repository without a commit': 'git init -q fresh; echo x > fresh/x',
  'a bare repository': 'git init -q --bare bare.git; echo x > bare.git/description',
  'a repository that is staged as one': `mkdir -p staged; (cd staged; ${nested}); git add staged`,
  'a submodule of the agent’s': `mkdir -p lib-src; (cd lib-src; ${nested}); git -c protocol.file.allow=always submodule --quiet add "$PWD/lib-src" lib-sub`,
  'a second work tree': 'git worktree add -q -f -B side "$PWD/tree-side"; echo w > tree-side/w',
  'a repository among ignored files': `printf "vendor/\\n" >> .gitignore; mkdir -p vendor/dep; cd vendor/dep; ${nested}`,
  'a folder that is only called like a repository':
    'mkdir -p not-git/.git; echo x > not-git/.git/x; echo y > not-git/y',
  'a file that is only called like a repository':
    'mkdir -p not-git2; echo garbage > not-git2/.git; echo y > not-git2/y',
  'a repository in a repository': `mkdir -p outer/inner; (cd outer; ${nested}); cd outer/inner; ${nested}`,
  'a repository that goes': 'rm -rf nested staged outer fresh',
}

/** For tests: what an agent does with its repository; lines for a shell that runs in the workspace. */
export const repositoryShapes: Readonly<Record<string, string>> = {
  'a commit of everything': 'git add -A --ignore-errors .; git commit -qm all',
  'a commit of what is tracked': 'git commit -qam tracked',
  'an empty commit': 'git commit -q --allow-empty -m empty',
  'an amended commit':
    'echo $(git rev-list --all --count) >> amended.txt; git add amended.txt; git commit -q --amend -m amended',
  'a commit message with odd bytes': String.raw`git commit -q --allow-empty -m "$(printf 'odd \351\n\nbody "x"')"`,
  'a squash by a rebase':
    'for i in 1 2 3; do echo $i >> squash.txt; git add squash.txt; git commit -qm "s$i" squash.txt; done; git stash -q; GIT_SEQUENCE_EDITOR="sed -i 2,3s/pick/fixup/" git rebase -qi HEAD~3; git stash pop -q',
  'a rebase in conflict':
    'git stash -qu; git checkout -qb r1; echo a > clash; git add clash; git commit -qm a; git checkout -qb r2 HEAD~1; echo b > clash; git add clash; git commit -qm b; echo c > after; git add after; git commit -qm c; git rebase -q r1',
  'a rebase that goes on': 'echo m > clash; git add clash; git rebase --continue',
  'a rebase that is given up': 'git rebase --abort',
  'a merge in conflict':
    'git checkout -qb m1; echo a > clash; git add clash; git commit -qm a; git checkout -qb m2 HEAD~1; echo b > clash; git add clash; git commit -qm b; git merge -q m1',
  'a merge that is finished': `echo m > clash; ${fixedConflict}`,
  'a merge that is given up': 'git merge --abort || git cherry-pick --abort || git revert --abort',
  'a merge without a fast forward':
    'b=topic$(git rev-list --all --count); git checkout -qb $b; echo $b > topic.txt; git add topic.txt; git commit -qm topic; git checkout -q -; git merge -q --no-ff -m joined $b',
  'a merge that is not committed':
    'b=open$(git rev-list --all --count); git checkout -qb $b; echo $b > open.txt; git add open.txt; git commit -qm open; git checkout -q -; git merge -q --no-ff --no-commit $b',
  'a cherry-pick in conflict':
    'git checkout -qb p1; echo a > clash; git add clash; git commit -qm a; git checkout -qb p2 HEAD~1; echo b > clash; git add clash; git commit -qm b; git cherry-pick p1',
  'a revert': 'git revert --no-edit HEAD || git revert --abort',
  'a soft reset': 'git reset -q --soft HEAD~1',
  'a mixed reset': 'git reset -q HEAD~1',
  'a hard reset': 'git reset -q --hard HEAD~1',
  'a reset of everything': 'git reset -q --hard',
  'a new branch': 'git checkout -qb work$(git rev-list --all --count)',
  'another branch':
    'git checkout -q "$(git branch --format="%(refname:short)" | grep -v "(" | sort | tail -n 2 | head -n 1)"',
  'another branch by force':
    'git checkout -qf "$(git branch --format="%(refname:short)" | grep -v "(" | sort | head -n 1)"',
  'a detached HEAD': 'git checkout -q --detach; git commit -q --allow-empty -m detached',
  'a detached HEAD in the past': 'git checkout -q --detach HEAD~1',
  'a branch without a commit': 'git checkout -q --orphan bare$(git rev-list --all --count)',
  'a branch that is renamed': 'git branch -M renamed',
  'a branch that is gone':
    'git branch -D "$(git branch --format="%(refname:short)" | grep -v "(" | sort | head -n 1)"',
  'a stash': 'echo s >> stashed.txt; git add stashed.txt; git stash push -q -m "one two"',
  'a stash of what is untracked': 'echo u > stash-me.txt; git stash push -qu -m untracked -- stash-me.txt',
  'a stash that is taken back': 'git stash pop -q',
  'a stash that is dropped': 'git stash drop -q',
  tags: 'git tag -f light; git tag -f -a -m "note" noted; git tag -f -a -m "of a tag" nested-tag noted',
  'tags of trees and files':
    'git tag -f a-tree "HEAD^{tree}"; git tag -f a-blob "$(git ls-files -s | head -n 1 | cut -d" " -f2)"',
  'tags that are gone': 'git tag -d light noted nested-tag',
  notes: 'git notes add -f -m "a note" HEAD',
  'refs of other kinds':
    'git update-ref refs/remotes/origin/main HEAD; git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main; git update-ref refs/own/x HEAD',
  'staged work':
    'echo s >> staged.txt; git add staged.txt; echo t >> staged.txt; echo n > new.txt; git add new.txt; rm new.txt',
  'what is to be added': 'echo i > intended; git add -N intended',
  'paths that the index no longer has': 'git rm -q --cached -r . -- . ":(exclude)*.md"',
  'everything staged': 'git add -A --ignore-errors .',
  'flags of the index':
    'git update-index --assume-unchanged "$(git ls-files | head -n 1)"; git update-index --skip-worktree "$(git ls-files | tail -n 1)"',
  'modes in the index':
    'git update-index --chmod=+x "$(git ls-files -s | grep ^100644 | cut -f2 | head -n 1)"',
  'tracked files that move': 'git mv "$(git ls-files | head -n 1)" moved-by-git',
  'tracked files that go': 'git rm -qf "$(git ls-files | head -n 1)"',
  'a clean work tree': 'git clean -qfdx',
  'packed objects': 'git gc -q --prune=now',
  'packed refs': 'git pack-refs --all',
  'settings of its own':
    'git config user.name "Some Body"; git config alias.x status; echo "*.tmp" >> .git/info/exclude',
  'a hook':
    'mkdir -p .git/hooks; printf "#!/bin/sh\\nexit 0\\n" > .git/hooks/post-commit; chmod 755 .git/hooks/post-commit',
  'a bisect': 'git bisect start HEAD HEAD~2',
  'an end of the bisect': 'git bisect reset',
  'a lock that was left': 'rm -f .git/index.lock; touch .git/refs/heads/x.lock',
  'a sparse checkout':
    'mkdir -p wide narrow; echo w > wide/w; echo n > narrow/n; git add wide narrow; git commit -qm sparse; git sparse-checkout set wide',
  'an end of the sparse checkout': 'git sparse-checkout disable',
}
