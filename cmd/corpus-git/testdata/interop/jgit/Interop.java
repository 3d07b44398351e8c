// Drives JGit with Apache MINA sshd, what Jenkins uses, against a server of ours.
// Usage: Interop URL KEY KNOWN_HOSTS DIR
// It makes a history in DIR/a, pushes it, clones it to DIR/b and DIR/shallow, fetches, pushes tags, deletes one, pushes a branch
// that is refused, and prints a line for each step. Any surprise is an exception, and exit status 1.

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.api.PushCommand;
import org.eclipse.jgit.api.TransportConfigCallback;
import org.eclipse.jgit.lib.ObjectId;
import org.eclipse.jgit.lib.Ref;
import org.eclipse.jgit.revwalk.RevCommit;
import org.eclipse.jgit.transport.PushResult;
import org.eclipse.jgit.transport.RefSpec;
import org.eclipse.jgit.transport.RemoteRefUpdate;
import org.eclipse.jgit.transport.SshTransport;
import org.eclipse.jgit.transport.URIish;
import org.eclipse.jgit.transport.sshd.SshdSessionFactory;
import org.eclipse.jgit.transport.sshd.SshdSessionFactoryBuilder;

public class Interop {
    static String url;
    static TransportConfigCallback ssh;

    public static void main(String[] args) throws Exception {
        url = args[0];
        Path dir = Path.of(args[3]);
        // The factory reads keys and known hosts from a folder in the layout of ~/.ssh.
        Path home = dir.resolve("jgit-home");
        Path dotssh = home.resolve(".ssh");
        Files.createDirectories(dotssh);
        Files.copy(Path.of(args[1]), dotssh.resolve("id_ed25519"), StandardCopyOption.REPLACE_EXISTING);
        Files.copy(Path.of(args[1] + ".pub"), dotssh.resolve("id_ed25519.pub"), StandardCopyOption.REPLACE_EXISTING);
        Files.copy(Path.of(args[2]), dotssh.resolve("known_hosts"), StandardCopyOption.REPLACE_EXISTING);
        SshdSessionFactory factory = new SshdSessionFactoryBuilder()
            .setHomeDirectory(home.toFile())
            .setSshDirectory(dotssh.toFile())
            .setPreferredAuthentications("publickey")
            .build(null);
        ssh = transport -> ((SshTransport) transport).setSshSessionFactory(factory);
        try {
            run(dir);
        } finally {
            factory.close();
        }
        System.out.println("all done");
        System.exit(0);
    }

    static void run(Path dir) throws Exception {
        File a = dir.resolve("a").toFile();
        Git git = Git.open(a);
        git.remoteAdd().setName("prod").setUri(new URIish(url)).call();

        // A first push of the branch that deploys: its output comes as messages.
        PushResult r = push(git, new RefSpec("refs/heads/master:refs/heads/master"));
        expect(r, "refs/heads/master", RemoteRefUpdate.Status.OK);
        need(r.getMessages().contains("live"), "the deployment's output: " + r.getMessages());
        System.out.println("pushed");

        // Files, a folder, an executable; an incremental push.
        for (int i = 0; i < 50; i++) {
            Path f = a.toPath().resolve("dir/file" + i);
            Files.createDirectories(f.getParent());
            Files.writeString(f, "line " + i + "\n".repeat(i), StandardCharsets.UTF_8);
        }
        git.add().addFilepattern(".").call();
        RevCommit two = git.commit().setMessage("Two").setSign(false).call();
        git.tag().setName("v1").setMessage("A tag").setSigned(false).call();
        git.tag().setName("light").setAnnotated(false).call();
        r = push(git, new RefSpec("refs/heads/master"), new RefSpec("refs/tags/v1"), new RefSpec("refs/tags/light"));
        expect(r, "refs/heads/master", RemoteRefUpdate.Status.OK);
        expect(r, "refs/tags/v1", RemoteRefUpdate.Status.OK);
        System.out.println("pushed more");
        r = push(git, new RefSpec("refs/heads/master"));
        expect(r, "refs/heads/master", RemoteRefUpdate.Status.UP_TO_DATE);

        // What is refused says why.
        r = push(git, new RefSpec("refs/heads/master:refs/heads/topic"));
        RemoteRefUpdate u = expect(r, "refs/heads/topic", RemoteRefUpdate.Status.REJECTED_OTHER_REASON);
        need(u.getMessage().contains("is not the deployed branch"), u.getMessage());
        System.out.println("refused: " + u.getMessage());

        // A tag goes.
        r = push(git, new RefSpec(":refs/tags/light"));
        expect(r, "refs/tags/light", RemoteRefUpdate.Status.OK);

        // Redeploy the same commit; push options.
        r = git.push().setRemote("prod").setTransportConfigCallback(ssh).setRefSpecs(new RefSpec("refs/heads/master:refs/deploy/now"))
            .setPushOptions(List.of("verbose")).call().iterator().next();
        expect(r, "refs/deploy/now", RemoteRefUpdate.Status.OK);
        need(r.getMessages().contains("live"), r.getMessages());
        System.out.println("redeployed");

        // ls-remote, clone, shallow clone.
        List<String> names = new ArrayList<>();
        for (Ref ref : Git.lsRemoteRepository().setRemote(url).setTransportConfigCallback(ssh).call()) {
            names.add(ref.getName());
        }
        need(names.contains("refs/heads/master") && names.contains("refs/tags/v1") && !names.contains("refs/tags/light"), names.toString());
        try (Git b = Git.cloneRepository().setURI(url).setDirectory(dir.resolve("b").toFile()).setTransportConfigCallback(ssh).call()) {
            need(b.getRepository().resolve("HEAD").equals(two), "the clone's HEAD");
            try (Git s = Git.cloneRepository().setURI(url).setDirectory(dir.resolve("shallow").toFile()).setDepth(1).setTransportConfigCallback(ssh).call()) {
                int n = 0;
                for (RevCommit c : s.log().call()) {
                    n++;
                }
                need(n == 1, "a shallow clone has " + n + " commits");
                s.fetch().setUnshallow(true).setTransportConfigCallback(ssh).call();
                n = 0;
                for (RevCommit c : s.log().call()) {
                    n++;
                }
                need(n == 2, "made whole it has " + n + " commits");
            }
            System.out.println("cloned");

            // Somebody pushes, the clone fetches; then it would push what is stale.
            Files.writeString(a.toPath().resolve("dir/file1"), "changed\n");
            RevCommit three = git.commit().setAll(true).setMessage("Three").setSign(false).call();
            expect(push(git, new RefSpec("refs/heads/master")), "refs/heads/master", RemoteRefUpdate.Status.OK);
            b.commit().setAllowEmpty(true).setMessage("Stale").setSign(false).call();
            PushResult stale = b.push().setRemote("origin").setTransportConfigCallback(ssh).call().iterator().next();
            RemoteRefUpdate su = stale.getRemoteUpdates().iterator().next();
            need(su.getStatus() == RemoteRefUpdate.Status.REJECTED_NONFASTFORWARD, "stale push: " + su.getStatus());
            b.fetch().setTransportConfigCallback(ssh).call();
            ObjectId there = b.getRepository().resolve("refs/remotes/origin/master");
            need(three.equals(there), "fetched " + there);
            System.out.println("fetched");
        }

        // A deployment that fails: rejected with the reason, and the branch stays.
        Files.writeString(a.toPath().resolve(".salt/020_broken.sls"), "broken:\n  cmd.run:\n    - name: exit 3\n");
        git.add().addFilepattern(".salt").call();
        git.commit().setMessage("Break").setSign(false).call();
        r = push(git, new RefSpec("refs/heads/master"));
        u = expect(r, "refs/heads/master", RemoteRefUpdate.Status.REJECTED_OTHER_REASON);
        need(u.getMessage().contains("failed in 020_broken"), u.getMessage());
        System.out.println("rolled back: " + u.getMessage());
    }

    static PushResult push(Git git, RefSpec... specs) throws Exception {
        PushCommand p = git.push().setRemote("prod").setTransportConfigCallback(ssh).setRefSpecs(specs);
        return p.call().iterator().next();
    }

    static RemoteRefUpdate expect(PushResult r, String ref, RemoteRefUpdate.Status want) {
        RemoteRefUpdate u = r.getRemoteUpdate(ref);
        need(u != null, "no answer for " + ref);
        need(u.getStatus() == want, ref + ": " + u.getStatus() + " " + u.getMessage() + "\n" + r.getMessages());
        return u;
    }

    static void need(boolean ok, String what) {
        if (!ok) {
            throw new IllegalStateException(what);
        }
    }
}
