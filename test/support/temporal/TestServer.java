import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.temporal.internal.testservice.GRPCServerHelper;
import io.temporal.internal.testservice.TestServicesStarter;
import java.net.InetSocketAddress;

/**
 * Temporal's test server, whose clock tests move.
 *
 * <p>Invariants: it listens on the loopback address alone, and ends with the process that started it, however that
 * one ends. That is all it is for: the server's own main program binds every interface, and stays.
 *
 * <p>Arguments as that program takes them, since the SDK passes them: a port, and a flag that lets time run ahead from
 * the start.
 */
public final class TestServer {
  public static void main(String[] arguments) throws Exception {
    int port = Integer.parseInt(arguments[0]);
    boolean skipping = arguments.length > 1 && arguments[1].equals("--enable-time-skipping");
    TestServicesStarter services = new TestServicesStarter(!skipping, 0);
    NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port));
    GRPCServerHelper.registerServicesAndHealthChecks(services.getServices(), builder);
    Server server = builder.build().start();
    Runtime.getRuntime().addShutdownHook(new Thread(services::close));
    ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> System.exit(0)));
    server.awaitTermination();
  }
}
